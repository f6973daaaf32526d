// A processor that uses everything the runtime offers, and whose outputs are easy to predict.

public import Log
public import Runtime

/// Events are words:
/// - `add N`: adds N to the key's sum and tells it.
/// - `twice N`: the same, told twice.
/// - `wake MS`, `sleep`: sets, moves and cancels the key's timer. When it fires it tells how often it has, and sets itself again
///   three times out of four.
/// - `toggle`: flips a second state of the key, which is deleted when it is off.
/// - `poison`: changes everything, tells, and fails.
///
/// Rows of the table: `row N`; the newest is told with every sum.
public struct Ledger: Processor, Sendable {
    static let wakeTimer: UInt8 = 1

    public var definition: WorkerDefinition

    /// Every name begins with `prefix`.
    public init(prefix: String = "", partitions: Int32 = 4, format: UInt8 = 1) {
        definition = WorkerDefinition(
            name: "ledger", group: "\(prefix)ledger",
            events: InputTopic("\(prefix)events", kinds: [.init("word", version: 1)]),
            outputs: [OutputTopic("\(prefix)told", type: "told", schema: "told/1")],
            changelog: "\(prefix)ledger.changelog", deadLetters: "\(prefix)ledger.dead-letters",
            partitions: partitions, app: "ledger/1")
        definition.tables = [InputTopic("\(prefix)rows", kinds: [], withoutHeader: .init("row", version: 1))]
        definition.rules = "r1"
        definition.stateFormat = format
    }

    struct State: Equatable {
        var count: Int64 = 0
        var sum: Int64 = 0
        var row: Int64 = 0
        var rows: Int64 = 0
        var fired: Int64 = 0

        init() {}

        /// The second format is longer by eight bytes.
        init(_ bytes: [UInt8], format: UInt8) throws(ProcessFailure) {
            guard bytes.count == (format == 1 ? 40 : 48) else { throw ProcessFailure("state", "\(bytes.count) bytes") }
            let numbers = (0..<5).map { index in
                bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: index * 8, as: Int64.self) }
            }
            (count, sum, row, rows, fired) = (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4])
        }

        func bytes(format: UInt8) -> [UInt8] {
            ([count, sum, row, rows, fired] + (format == 1 ? [] : [0])).flatMap { number in
                withUnsafeBytes(of: number) { Array($0) }
            }
        }
    }

    public func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        guard let key = record.copyOfKey() else { throw ProcessFailure("no_key") }
        let words = String(decoding: record.copyOfValue() ?? [], as: UTF8.self).split(separator: " ")
        let place = try turn.state(key.span)
        var state =
            try place.value.map { bytes throws(ProcessFailure) in try State(bytes, format: place.format) } ?? State()
        let number = words.count > 1 ? Int64(words[1]) ?? 0 : 0
        func tell(_ text: String) {
            let bytes = Array(text.utf8)
            turn.emit(0, key: key.span, value: bytes.span)
        }
        func keep() {
            let bytes = state.bytes(format: definition.stateFormat)
            place.put(bytes.span)
        }
        if record.topic == 1 {
            guard words.first == "row" else { throw ProcessFailure("no_row") }
            state.row = number
            state.rows += 1
            keep()
            return tell("row \(state.row) \(state.rows)")
        }
        switch words.first {
        case "add", "twice":
            state.count += 1
            state.sum += number
            keep()
            tell("sum \(state.count) \(state.sum) at \(turn.clock) row \(state.row)")
            if words.first == "twice" { tell("again \(state.sum)") }
        case "wake":
            keep()
            place.setTimer(Self.wakeTimer, due: turn.clock + number)
        case "sleep":
            if place.value != nil { place.setTimer(Self.wakeTimer, due: nil) }
        case "toggle":
            let second = try turn.state(Array("second ".utf8 + key).span)
            if second.value == nil { second.put(Array("on".utf8).span) } else { second.delete() }
            tell("toggled \(second.value == nil ? "off" : "on")")
        case "poison":
            state.sum = -1
            keep()
            place.setTimer(Self.wakeTimer, due: turn.clock + 1)
            tell("must not be seen")
            throw ProcessFailure("poison", "on demand")
        default: throw ProcessFailure("no_word", String(words.first ?? ""))
        }
    }

    public func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        let place = try turn.state(timer.key.span)
        guard let bytes = place.value else { throw ProcessFailure("no_state") }
        var state = try State(bytes, format: place.format)
        state.fired += 1
        if state.fired % 7 == 0 {
            let changed = state.bytes(format: definition.stateFormat)
            place.put(changed.span)
            throw ProcessFailure("seventh")
        }
        let changed = state.bytes(format: definition.stateFormat)
        place.put(changed.span)
        let text = Array("woken \(state.fired) at \(turn.clock) sum \(state.sum)".utf8)
        turn.emit(0, key: timer.key.span, value: text.span)
        if state.fired % 4 != 0 { place.setTimer(timer.kind, due: turn.clock + 100) }
    }
}
