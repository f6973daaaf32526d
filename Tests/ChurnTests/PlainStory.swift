// Records written by hand, for tests: what Apple would have said of one subscription.

import Foundation
import PlainChurn

/// 2026-01-01 is day 1 of year 2026, as everyone counts.
func instant(_ month: Int, _ day: Int, _ hour: Int = 0, year: Int = 2026) -> Int64 {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = .gmt
    let date = calendar.date(from: DateComponents(year: year, month: month, day: day, hour: hour))
    return Int64(date?.timeIntervalSince1970 ?? 0) * 1_000
}

struct PlainStory {
    private(set) var records: [[UInt8]] = []

    mutating func tell(
        _ type: String, _ subtype: String? = nil, at signed: Int64, _ transaction: [String: Any],
        info: [String: Any]? = nil
    ) {
        var record: [String: Any] = [
            "v": 1, "notificationUUID": "n\(records.count)", "notificationType": type, "signedDate": signed,
            "transaction": transaction.merging(["signedDate": signed]) { $1 },
        ]
        record["subtype"] = subtype
        record["renewalInfo"] = info?.merging(["signedDate": signed]) { $1 }
        guard let bytes = try? JSONSerialization.data(withJSONObject: record, options: .sortedKeys) else {
            preconditionFailure("no JSON: \(record)")
        }
        records.append(Array(bytes))
    }

    /// Of chain 1, in days of Greenwich.
    var churn: PlainChurn { PlainChurn(records: records, chain: "1", zone: "Etc/UTC", partition: 3) }

    static func transaction(
        _ id: String, _ purchase: Int64, _ expires: Int64, price: Int64 = 10_000, _ others: [String: Any] = [:]
    ) -> [String: Any] {
        let transaction: [String: Any] = [
            "transactionId": id, "purchaseDate": purchase, "expiresDate": expires, "price": price, "currency": "USD",
            "type": "Auto-Renewable Subscription", "inAppOwnershipType": "PURCHASED", "bundleId": "com.example.app",
            "productId": "pro.monthly", "storefront": "USA",
        ]
        return transaction.merging(others) { $1 }
    }

    static func cell(_ day: String, product: String = "pro.monthly", plan: String = "BILLED_UPFRONT") -> String {
        "3|\(day)|com.example.app|\(product)|\(plan)|USA|USD"
    }
}
