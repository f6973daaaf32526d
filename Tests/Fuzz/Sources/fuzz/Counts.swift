// The states that the worker of churn wrote itself.

import Churn
import Contract
import JSON
import Notices
import SubscriptionHistory
import Zone

/// Bytes that are accepted as a state are a state that could have been written: written from its values it has the same bytes. The
/// worker counts it at any instant and hears a record about it, or says that it is damaged; it never stops. What it counts by the tail of
/// a life is what it counts as a whole.
let counts: Target = { bytes, count in
    let bytes = input(bytes, count)
    readCells(bytes)
    var desk = Desk()
    guard let rewritten = desk.with(bytes, { $0.written(copiesKept: false) }) else { return 0 }
    precondition(rewritten == bytes, "a state is written as another")
    for clock in [Int64.min, 0, 50, 250, World.now, Int64.max] {
        _ = desk.with(bytes) { state in
            state.settle(at: clock, originalTransactionId: PurchaseId(number: 1))
            precondition(state.nextChange.map { $0 > clock } ?? true, "a change is announced for the past")
            read(state)
            let kept = state.written(copiesKept: true)
            precondition(kept == state.written(copiesKept: false), "what is copied is not what is written")
        }
    }
    for record in records {
        guard let kept = desk.hear(record, bytes) else { continue }
        precondition(desk.hear(record, kept) == nil, "a record is news twice")
        for late in lateRecords {
            let whole = (desk.hear(late, kept), desk.nextChange)
            let tail = (desk.hear(late, kept, isInStep: true), desk.nextChange)
            precondition(whole == tail, "the tail of a life is counted otherwise than the whole")
        }
    }
    return 0
}

/// A cell and an overview that are accepted are written in the same form.
private func readCells(_ bytes: [UInt8]) {
    bytes.withUnsafeBufferPointer { bytes in
        var writer = ByteWriter()
        var cell = CellState(at: CellState.Mark(asOf: 0, offset: 0))
        if cell.read(bytes) {
            cell.write(to: &writer)
            precondition(writer.written.elementsEqual(bytes), "a cell is written as another")
        }
        var overview = Overview(day: 0, zone: "UTC")
        if overview.read(bytes) {
            writer.removeAll()
            overview.write(to: &writer)
            precondition(writer.written.elementsEqual(bytes), "an overview is written as another")
            _ = Zone.utc.start(of: CivilDay(number: overview.day + 1))
        }
    }
}

/// Reads all that the worker publishes of the changes.
private func read(_ state: borrowing ChainState) {
    var key = ByteWriter()
    var json = JSONWriter()
    let id: StaticString = "1"
    id.withUTF8Buffer { id in
        let event = ChurnEvent(originalTransactionId: id, clock: World.now, cause: nil)
        for number in state.changes.indices {
            let change = state.changes[number]
            precondition(!state.sums(of: change).isEmpty, "a change of nothing")
            _ = state.currency(of: change).count
            key.removeAll()
            state.writeKey(of: change, partition: 1, to: &key)
            json.removeAll()
            event.write(id: id, cell: key.written, change: state.sums(of: change), to: &json)
        }
    }
}

private struct Desk: ~Copyable {
    private var document = JSONDocument()
    private let reader = NoticeReader()
    private var state = ChainState(.utc)

    /// nil: the bytes are no state.
    mutating func with<Result>(_ kept: [UInt8], _ body: (inout ChainState) -> Result) -> Result? {
        kept.withUnsafeBufferPointer { state.read($0) ? body(&state) : nil }
    }

    var nextChange: Int64? { state.nextChange }

    /// What is kept after a record; nil: it is not new, or the bytes are no state.
    mutating func hear(_ record: String, _ kept: [UInt8]?, isInStep: Bool = false) -> [UInt8]? {
        let value = Array(record.utf8)
        guard (try? document.read(value.span)) != nil else { preconditionFailure("the record is not JSON") }
        guard let news = ChurnNews(reader.read(document), of: document), news.saysAnything else { return nil }
        guard let kept else {
            state.removeAll()
            return state.heard(news, isInStep: isInStep)
        }
        return with(kept) { $0.heard(news, isInStep: isInStep) } ?? nil
    }
}

extension ChainState {
    fileprivate mutating func written(copiesKept: Bool) -> [UInt8] {
        var writer = ByteWriter()
        write(to: &writer, copiesKept: copiesKept)
        return writer.bytes
    }

    fileprivate mutating func heard(_ news: ChurnNews, isInStep: Bool) -> [UInt8]? {
        guard merge(news) else { return nil }
        settle(at: World.now, originalTransactionId: PurchaseId(number: 1), isInStep: isInStep)
        return written(copiesKept: true)
    }
}

private var records: [String] {
    World.stories.values.flatMap { $0.split(separator: "\n").map(String.init) }
}

/// The weeks of a subscription that is long enough to be counted by its tail. The fortieth has just begun.
private func week(_ number: Int64, _ type: String = "DID_RENEW", _ refund: String = "") -> String {
    let week: Int64 = 7 * 86_400_000
    let start = World.now - (40 - number) * week
    return """
        {"v":1,"notificationUUID":"\(type) \(number)","notificationType":"\(type)","signedDate":\(start),"transaction":\
        {"transactionId":"\(100 + number)","purchaseDate":\(start),"expiresDate":\(start + week),"productId":"pro",\
        "type":"Auto-Renewable Subscription","bundleId":"com.example.app","signedDate":\(start),\(refund)\
        "price":1990,"currency":"USD"},"renewalInfo":{"autoRenewStatus":1,"signedDate":\(start)}}
        """
}

/// The last two weeks, and a refund of an earlier one.
private let lateRecords = [
    week(39), week(40), week(37, "REFUND", "\"revocationDate\":\(World.now - 86_400_000),"),
]

extension World {
    /// The states after these records.
    static var countedStates: [String: [UInt8]] {
        let weeks = (1...38).map { week($0) }.joined(separator: "\n")
        return stories.merging(["weeks": weeks]) { $1 }.mapValues { story in
            var desk = Desk()
            return story.split(separator: "\n").reduce(nil) { desk.hear(String($1), $0) ?? $0 } ?? []
        }
    }
}
