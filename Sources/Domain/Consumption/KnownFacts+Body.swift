// The request body that is sent to Apple.

internal import Contract
internal import JSON
internal import Notices
internal import Records

extension KnownFacts {
    /// - Parameter clock: the time of the decision; the age of the account is computed for it.
    func body(_ verdict: PolicyVerdict, at clock: Int64) -> [UInt8] {
        purchase.isAdvancedCommerce ? bodyV1(verdict, at: clock) : bodyV2(verdict)
    }

    private func bodyV2(_ verdict: PolicyVerdict) -> [UInt8] {
        var json = JSONWriter(capacity: 192)
        json.object { json in
            json.member("customerConsented", true)
            json.member("sampleContentProvided", verdict.sampleContentProvided)
            json.member("deliveryStatus", verdict.deliveryStatus.rawValue)
            // Members without a value are left out: Apple rejects null.
            if let percentage = verdict.consumptionPercentage { json.member("consumptionPercentage", percentage) }
            if let preference = verdict.refundPreference { json.member("refundPreference", preference.rawValue) }
        }
        return json.bytes
    }

    /// In V1, 0 means "undeclared".
    private func bodyV1(_ verdict: PolicyVerdict, at clock: Int64) -> [UInt8] {
        var json = JSONWriter(capacity: 384)
        json.object { json in
            json.member("accountTenure", Self.tenure(since: usage.accountCreatedAt, at: clock))
            json.member("appAccountToken", utf8: purchase.appAccountToken?.bytes ?? [])
            json.member("consumptionStatus", Self.consumptionStatus(verdict.consumptionPercentage))
            json.member("customerConsented", true)
            json.member("deliveryStatus", verdict.deliveryStatus.numberOfV1)
            // These are sums over all purchases of a customer. A worker sees one subscription at a time and cannot know
            // them.
            json.member("lifetimeDollarsPurchased", 0)
            json.member("lifetimeDollarsRefunded", 0)
            json.member("platform", usage.platform ?? 0)
            json.member("playTime", Self.playTime(usage.playTimeSeconds))
            json.member("refundPreference", verdict.refundPreference?.numberOfV1 ?? 0)
            json.member("sampleContentProvided", verdict.sampleContentProvided)
            json.member("userStatus", usage.userStatus ?? 0)
        }
        return json.bytes
    }

    /// The lower bounds of Apple's account tenure ranges, which are numbered from 1.
    private static let tenureDays: [Int64] = [0, 3, 10, 30, 90, 180, 365]
    private static let playTimeSteps: [Int64] = [0, 5 * 60, 3_600, 6 * 3_600, 86_400, 4 * 86_400, 16 * 86_400]

    private static func tenure(since created: Int64?, at clock: Int64) -> Int {
        guard let created, created <= clock else { return 0 }
        let days = adding(clock, created == .min ? .max : -created) / millisecondsPerDay
        return tenureDays.count { $0 <= days }
    }

    private static func playTime(_ seconds: Int64?) -> Int {
        guard let seconds, seconds >= 0 else { return 0 }
        return playTimeSteps.count { $0 <= seconds }
    }

    private static func consumptionStatus(_ percentage: Int64?) -> Int {
        switch percentage {
        case nil: 0
        case 0?: 1
        case 100_000?: 3
        default: 2
        }
    }
}
