// What the app's own backend says of purchases.

public import JSON
internal import Notices

/// A customer's word on whether what he has used may be told to Apple.
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

/// All that was said of one purchase, or of all purchases of one subscription.
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

    /// A row that came later. What it does not say stays; the consent goes by its own date.
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
    /// nil: of all purchases of the subscription.
    let transactionId: Text?
    /// Of the record.
    let timestamp: Int64
    let usage: Usage

    /// - Parameters:
    ///   - row: an object that `UsageRecord` has let pass: what is of a wrong kind is taken as not said here.
    ///   - timestamp: of its record.
    public init(_ row: JSONValue, timestamp: Int64) {
        transactionId = row["transactionId"]?.string.map { Text($0) }
        self.timestamp = timestamp
        var usage = Usage()
        usage.consent = row["consented"]?.bool.map { isGiven in
            let said = row["consentedAt"]?.integer ?? timestamp
            // Nobody consents in the future: such a date would outlast every withdrawal.
            return Consent(isGiven: isGiven, at: isGiven ? min(said, timestamp) : said)
        }
        usage.deliveryStatus = row["deliveryStatus"]?.string.flatMap(DeliveryStatus.init(rawValue:))
        usage.sampleContentProvided = row["sampleContentProvided"]?.bool
        usage.consumptionPercentage = row["consumptionPercentage"]?.integer
        usage.refundPreference = row["refundPreference"]?.string.flatMap(RefundPreference.init(rawValue:))
        usage.accountCreatedAt = row["accountCreatedAt"]?.integer
        usage.playTimeSeconds = row["playTimeSeconds"]?.integer
        usage.userStatus = row["userStatus"]?.integer
        usage.platform = row["platform"]?.integer
        self.usage = usage
    }
}

/// The merged rows of one subscription.
struct UsageTable: Sendable, Equatable {
    /// 19 years of weeks.
    static let limitTransactions = 1_000

    struct Entry: Sendable, Equatable {
        var transactionId: Text
        /// Of the newest of its rows.
        var timestamp: Int64
        var usage: Usage
    }

    /// For every purchase.
    var all = Usage()
    /// By transaction, in the order of their ids.
    var entries: [Entry] = []
    /// The newest refusal of a purchase that was forgotten at the limit: it goes on for all that have no row of their own.
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

    /// What holds for one purchase: its own row over that for all, but for the consent, of which the newest word holds.
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
