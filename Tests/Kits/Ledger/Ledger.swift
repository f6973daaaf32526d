// A processor that uses everything that the runtime offers, with outputs that are easy to predict.

public import Log
public import Runtime

/// Events are words:
/// - `add N`: adds N to the key's sum and emits it.
/// - `twice N`: the same, emitted twice.
/// - `wake MS`, `sleep`: sets, moves and cancels the key's timer. When it fires it emits how often it has fired, and sets itself
///   again three times out of four.
/// - `toggle`: flips a second state of the key; when it is off, the state is deleted.
/// - `poison`: changes everything, emits, and fails.
///
/// Added numbers and timers that fire also change a total: a settled key, published once per commit. `sleep` deletes one.
///
/// Rows of the table: `row N`; the newest row is emitted with every sum.
public struct Ledger: Processor, Sendable {
    static let wakeTimer: UInt8 = 1
    /// A total cannot be settled if such a number was added last.
    public static let unsettling: Int64 = 1_000_000

    public static func totalKey(of number: Int64) -> [UInt8] { [0] + Array("total-\(number % 5)".utf8) }

    public var definition: WorkerDefinition

    /// Every name begins with `prefix`.
    public init(prefix: String = "", partitions: Int32 = 4, format: UInt8 = 1) {
        definition = WorkerDefinition(
            name: "ledger", group: "\(prefix)ledger",
            events: InputTopic("\(prefix)events", kinds: [.init("word", version: 1)]),
            outputs: [
                OutputTopic("\(prefix)told", schema: "told/1"),
                OutputTopic("\(prefix)totals", schema: "total/1"),
            ],
            changelog: "\(prefix)ledger.changelog", deadLetters: "\(prefix)ledger.dead-letters",
            partitions: partitions, app: "ledger/1")
        definition.tables = [InputTopic("\(prefix)rows", kinds: [], withoutHeader: .init("row", version: 1))]
        definition.rules = "r1"
        definition.settledPrefix = 0
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
            try add(number, toTotalOf: number, turn)
            tell("sum \(state.count) \(state.sum) at \(turn.clock) row \(state.row)")
            if words.first == "twice" { tell("again \(state.sum)") }
        case "wake":
            keep()
            place.setTimer(Self.wakeTimer, due: turn.clock + number)
        case "sleep":
            if place.value != nil { place.setTimer(Self.wakeTimer, due: nil) }
            try turn.state(Self.totalKey(of: 0).span).delete()
        case "toggle":
            let second = try turn.state(Array("second ".utf8 + key).span)
            if second.value == nil { second.put(Array("on".utf8).span) } else { second.delete() }
            tell("toggled \(second.value == nil ? "off" : "on")")
        case "poison":
            state.sum = -1
            keep()
            place.setTimer(Self.wakeTimer, due: turn.clock + 1)
            try add(1, toTotalOf: 1, turn)
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
        try add(1, toTotalOf: state.fired, turn)
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

    /// A total counts to seven, so that it returns to nothing again and again. It contains the last change.
    private func add(_ number: Int64, toTotalOf other: Int64, _ turn: Turn) throws(ProcessFailure) {
        let place = try turn.state(Self.totalKey(of: other).span)
        let sum = ((place.value.map(Total.init)?.sum ?? 0) + number) % 7
        place.put(Array("\(sum) \(number) \(turn.offset) \(turn.recordClock)".utf8).span)
    }

    private struct Total {
        let sum, number, offset, clock: Int64

        init(_ bytes: [UInt8]) {
            let numbers = String(decoding: bytes, as: UTF8.self).split(separator: " ").map { Int64($0)! }
            (sum, number, offset, clock) = (numbers[0], numbers[1], numbers[2], numbers[3])
        }
    }

    public func settle(_ place: KeyState, _ turn: Turn) throws(ProcessFailure) {
        let key = place.key.span
        guard let value = place.value else {
            let origin = Origin(id: Array("gone".utf8), offset: turn.offset, timestamp: turn.recordClock)
            return turn.emit(1, as: origin, key: key, value: nil)
        }
        let total = Total(value)
        let name = String(decoding: place.key.dropFirst(), as: UTF8.self)
        let origin = Origin(
            id: Array("\(turn.partition)-\(total.offset)-\(name)".utf8), offset: total.offset, timestamp: total.clock)
        if total.sum == 0 {
            place.delete()
            return turn.emit(1, as: origin, key: key, value: nil)
        }
        turn.emit(1, as: origin, key: key, value: value.span)
        if total.number > Self.unsettling { throw ProcessFailure("unsettling") }
    }
}
