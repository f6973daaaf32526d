// Collects the notifications of one subscription.

import Contract
import Entitlements
import JSON
import Log
import Notices
import Records

/// One record of `notifications`.
struct ToldNotification: Sendable {
    let partition: Int32
    let offset: Int64
    /// When it arrived, in milliseconds since 1970.
    let timestamp: Int64
    let uuid: String?
    let type: String?
    let subtype: String?
    let signedDate: Int64?
    let source: String?
    /// A few hundred bytes: much less than the record.
    let facts: Facts
    /// The partition's clock when it was read.
    let clock: Int64

    init(_ record: borrowing RecordView, _ document: borrowing JSONDocument, clock: Int64) {
        let reading = NotificationReading(document)
        partition = record.partition
        offset = record.offset
        timestamp = record.timestamp
        uuid = reading.notificationUUID.map { "\($0)" }
        type = reading.type.map { "\($0)" }
        subtype = reading.subtype.map { "\($0)" }
        signedDate = reading.signedDate
        source = document.member(MemberName.source.text, of: document.root).flatMap { document.text($0.value) }
        facts = reading.facts
        self.clock = clock
    }

    func tells(_ id: TransactionId, where isIt: (Transaction) -> Bool = { _ in true }) -> Bool {
        facts.purchases.contains { $0.transaction.id == id && isIt($0.transaction) }
    }

    var transactionId: String? { facts.purchases.first.map { "\($0.transaction.id)" } }

    /// Whether this notification was the first with this version.
    func tells(_ version: Version) -> Bool {
        facts.contains(version)
    }
}

/// Takes every record of a partition, and keeps those of one key. One thread.
final class SubscriptionFold {
    /// More than a subscription has in its life. Of older ones beyond this limit only the merged facts are kept.
    static let limitKept = 20_000

    private let limit: Int
    private let key: [UInt8]
    private var document = JSONDocument()
    private(set) var headers = HeaderCheck(.notification)
    /// In the order of the log, repetitions included.
    private(set) var told: [ToldNotification] = []
    private(set) var olderCount = 0
    private var olderFacts = Facts()
    /// Records of the key that this version cannot read.
    private(set) var unreadable = 0
    /// The date of the first purchase, from its transactions; nil: no transaction has it.
    private(set) var firstPurchase: Int64?
    /// The greatest timestamp of all records of the partition; nil: there is no record.
    private(set) var clock: Int64?

    init(key: [UInt8], limit: Int = limitKept) {
        self.key = key
        self.limit = limit
    }

    var count: Int { olderCount + told.count }

    func add(_ record: borrowing RecordView) {
        let clock = max(clock ?? record.timestamp, record.timestamp)
        self.clock = clock
        // All other records, including ticks, are not parsed.
        guard let found = record.key, equal(found, key) else { return }
        switch headers.meaning(of: record) {
        case .known: break
        case .unknownType, .strange(.type): return
        case .newer, .strange(.schema): return unreadable += 1
        }
        guard let value = record.value else { return unreadable += 1 }
        do throws(JSONFault) { try document.read(value) } catch { return unreadable += 1 }
        told.append(ToldNotification(record, document, clock: clock))
        if let transaction = document.member(MemberName.transaction.text, of: document.root)?.value,
            let date = document.member(MemberName.originalPurchaseDate.text, of: transaction).flatMap({
                document.integer($0.value)
            })
        {
            firstPurchase = min(firstPurchase ?? date, date)
        }
        // Drops many at once, because each drop at the front moves all the rest.
        guard told.count >= 2 * limit else { return }
        for old in told.prefix(limit) { olderFacts.merge(old.facts) }
        told.removeFirst(limit)
        olderCount += limit
    }

    /// - Parameter isIncluded: selects kept notifications; older ones are always included.
    func facts(where isIncluded: (ToldNotification) -> Bool = { _ in true }) -> Facts {
        var facts = olderFacts
        for notification in told where isIncluded(notification) { facts.merge(notification.facts) }
        return facts
    }
}
