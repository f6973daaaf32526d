// What the app's own backend reports about purchases.

public import JSON
internal import Notices
internal import Records

/// Whether the customer allows sending usage data to Apple.
struct Consent: Sendable, Equatable {
    var isGiven: Bool
    /// When it was given or withdrawn.
    var at: Int64

    /// The newer consent wins. If both have the same time, the refusal wins.
    func overruled(by other: Consent?) -> Consent {
        guard let other else { return self }
        if other.at != at { return other.at > at ? other : self }
        return isGiven ? other : self
    }
}

/// Everything reported about one purchase, or about all purchases of one subscription.
struct Usage: Sendable, Equatable {
    var consent: Consent?
    var deliveryStatus: DeliveryStatus?
    var sampleContentProvided: Bool?
    /// In thousandths of a percent.
    var consumptionPercentage: Int64?
    var refundPreference: RefundPreference?
    var accountCreatedAt: Int64?
    var playTimeSeconds: Int64?
    var userStatus: Int64?
    var platform: Int64?

    /// Merges a later row. Values that it does not contain stay; consent is compared by its own date.
    mutating func merge(_ row: Usage) {
        consent = consent.map { $0.overruled(by: row.consent) } ?? row.consent
        deliveryStatus = row.deliveryStatus ?? deliveryStatus
        sampleContentProvided = row.sampleContentProvided ?? sampleContentProvided
        consumptionPercentage = row.consumptionPercentage ?? consumptionPercentage
        refundPreference = row.refundPreference ?? refundPreference
        accountCreatedAt = row.accountCreatedAt ?? accountCreatedAt
        playTimeSeconds = row.playTimeSeconds ?? playTimeSeconds
        userStatus = row.userStatus ?? userStatus
        platform = row.platform ?? platform
    }
}

/// One row of `usage`.
public struct UsageRow: Sendable, Equatable {
    /// nil: the row is about all purchases of the subscription.
    let transactionId: Text?
    /// The timestamp of the record.
    let timestamp: Int64
    let usage: Usage

    /// - Parameters:
    ///   - row: an object that `UsageRecord` has accepted. Members of the wrong type are ignored here.
    ///   - timestamp: the timestamp of the record.
    public init(_ row: JSONValue, timestamp: Int64) {
        transactionId = row[MemberName.transactionId]?.string.map { Text($0) }
        self.timestamp = timestamp
        var usage = Usage()
        usage.consent = row[MemberName.consented]?.bool.map { isGiven in
            let said = row[MemberName.consentedAt]?.integer ?? timestamp
            // Consent cannot be given in the future: such a date would outlast every withdrawal.
            return Consent(isGiven: isGiven, at: isGiven ? min(said, timestamp) : said)
        }
        usage.deliveryStatus = row[MemberName.deliveryStatus]?.string.flatMap(DeliveryStatus.init(rawValue:))
        usage.sampleContentProvided = row[MemberName.sampleContentProvided]?.bool
        usage.consumptionPercentage = row[MemberName.consumptionPercentage]?.integer
        usage.refundPreference = row[MemberName.refundPreference]?.string.flatMap(RefundPreference.init(rawValue:))
        usage.accountCreatedAt = row[MemberName.accountCreatedAt]?.integer
        usage.playTimeSeconds = row[MemberName.playTimeSeconds]?.integer
        usage.userStatus = row[MemberName.userStatus]?.integer
        usage.platform = row[MemberName.platform]?.integer
        self.usage = usage
    }
}

/// The merged rows of one subscription.
struct UsageTable: Sendable, Equatable {
    /// Enough for 19 years of weekly purchases.
    static let limitTransactions = 1_000

    struct Entry: Sendable, Equatable {
        var transactionId: Text
        /// The timestamp of its newest row.
        var timestamp: Int64
        var usage: Usage
    }

    /// Applies to every purchase.
    var all = Usage()
    /// One entry for each transaction, sorted by id.
    var entries: [Entry] = []
    /// The newest refusal among the purchases that were forgotten at the limit. It applies to all purchases without
    /// their own row.
    var forgottenRefusal: Int64?

    var isEmpty: Bool { self == UsageTable() }

    mutating func merge(_ row: UsageRow) {
        guard let id = row.transactionId else { return all.merge(row.usage) }
        if let place = entries.firstIndex(where: { $0.transactionId == id }) {
            entries[place].usage.merge(row.usage)
            entries[place].timestamp = max(entries[place].timestamp, row.timestamp)
            return
        }
        let place = entries.firstIndex { id < $0.transactionId } ?? entries.count
        entries.insert(Entry(transactionId: id, timestamp: row.timestamp, usage: row.usage), at: place)
        if entries.count > Self.limitTransactions { forgetOldest() }
    }

    private mutating func forgetOldest() {
        let oldest = entries.indices.min { left, right in
            (entries[left].timestamp, entries[left].transactionId)
                < (entries[right].timestamp, entries[right].transactionId)
        }
        guard let oldest else { return }
        if let consent = entries[oldest].usage.consent, !consent.isGiven {
            forgottenRefusal = max(forgottenRefusal ?? consent.at, consent.at)
        }
        entries.remove(at: oldest)
    }

    /// The usage of one purchase: its own row takes precedence over the row for all. Of the consents the newest one
    /// counts.
    func usage(of transactionId: Text) -> Usage {
        var usage = all
        guard let entry = entries.first(where: { $0.transactionId == transactionId }) else {
            if let forgottenRefusal, let consent = usage.consent {
                usage.consent = consent.overruled(by: Consent(isGiven: false, at: forgottenRefusal))
            }
            return usage
        }
        usage.merge(entry.usage)
        return usage
    }
}
