import Churn
import Contract
import JSON

/// Cells written by hand.
struct Cells {
    var records: [CellRecord] = []
    /// The clock of the cells that are written next.
    var asOf = instant("2026-12-15") + 43_200_000

    init() {}

    static func instant(_ day: String) -> Int64 { CivilDay(day)!.number * 86_400_000 }

    mutating func write(
        _ day: String, _ sums: KeyValuePairs<ChurnCounter, Int64>, product: String = "pro", currency: String = "USD",
        storefront: String = "USA", plan: String = "BILLED_UPFRONT", partition: Int32 = 0
    ) {
        let json = """
            {"v":1,"partition":\(partition),"day":"\(day)","bundleId":"com.example.app","productId":"\(product)",\
            "billingPlan":"\(plan)","storefront":"\(storefront)","currency":"\(currency)",\
            \(Self.members(sums)),"asOf":\(asOf),"offset":1}
            """
        var document = JSONDocument()
        do throws(JSONFault) { try document.read(Array(json.utf8).span) } catch { preconditionFailure(json) }
        guard let record = CellRecord(document) else { preconditionFailure(json) }
        records.append(record)
    }

    private static func members(_ sums: KeyValuePairs<ChurnCounter, Int64>) -> String {
        [("counts", false), ("money", true)].map { name, isMoney in
            let members = sums.filter { $0.key.isMoney == isMoney }.map { "\"\($0.key.name)\":\($0.value)" }
            return "\"\(name)\":{\(members.joined(separator: ","))}"
        }.joined(separator: ",")
    }

    var table: CellTable {
        var table = CellTable()
        for record in records { table.add(record) }
        return table
    }

    func report(_ from: String = "2026-11-01", _ to: String = "2026-12-01", by: String = "") throws -> MetricsReport {
        MetricsReport(table, try MetricsRequest(from: from, to: to, by: by), dayOf: dayInUTC)
    }
}

extension MetricsReport.Group {
    func rate(_ name: String) -> Rate? { rates.first { $0.name == name } }
    func stock(_ name: String) -> Stock? { stocks.first { $0.name == name } }
}

extension MetricsReport.Money {
    func rate(_ name: String) -> Rate? { rates.first { $0.name == name } }
    func stock(_ name: String) -> Stock? { stocks.first { $0.name == name } }
}
