import Log

@testable import Runtime

/// A processor that does what its records say. Statements of a value are separated by `;`:
/// - `put KEY VALUE`, `delete KEY`
/// - `tell TEXT`: emits `TEXT @clock` with the key `told`
/// - `wake KEY KIND DUE`, `cancel KEY KIND`: timers
/// - `due KEY KIND`: emits when that timer fires
/// - `many COUNT DUE`: that many keys, each with a timer
/// - `note KEY`: stores the turn's clock, the record's clock and offset, and the number of its outputs
/// - `fail REASON`
///
/// A timer that fires emits that; a value that begins with `!` is then run, with `|` between its statements.
///
/// Keys that begin with `=` are settled: their value, or a tombstone, goes to `cells`. `zero` deletes itself; `bad` and `huge`
/// emit and fail; `look KEY` reads another key.
struct Script: Processor {
    static let told = 0
    static let cells = 1
    static let changelog = 2
    static let deadLetters = 3
    static let rows = 4

    var definition: WorkerDefinition
    /// The key of a row from outside, read from its value; if not set, the record's key. Returns nil for what it cannot read.
    var identity: ((String) -> String?)?
    /// Called when a partition is closed.
    var isClosing: (Int32) -> Void = { _ in }

    init(partitions: Int32 = 1) {
        definition = WorkerDefinition(
            name: "script", group: "script", events: InputTopic("events", kinds: [.init("word", version: 2)]),
            outputs: [
                OutputTopic("told", schema: "told/1"),
                OutputTopic("cells", schema: "cell/1"),
            ], changelog: "script.changelog", deadLetters: "script.dead-letters", partitions: partitions,
            app: "script/1")
        definition.settledPrefix = UInt8(ascii: "=")
        definition.tables = [InputTopic("rows", kinds: [], withoutHeader: .init("row", version: 1))]
    }

    func identity(ofRow record: borrowing RecordView) throws(ProcessFailure) -> [UInt8] {
        guard let identity else { return record.copyOfKey() ?? [] }
        guard let name = identity(String(decoding: record.copyOfValue() ?? [], as: UTF8.self)) else {
            throw ProcessFailure("nobody", "the row does not say whose it is")
        }
        return Array(name.utf8)
    }

    func closed(_ partition: Int32) { isClosing(partition) }

    func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        try run(String(decoding: record.copyOfValue() ?? [], as: UTF8.self).split(separator: ";"), turn)
    }

    func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        let value = String(decoding: try turn.state(timer.key.span).value ?? [], as: UTF8.self)
        tell("fired \(String(decoding: timer.key, as: UTF8.self)) \(timer.kind)", turn)
        if value.hasPrefix("!") { try run(value.dropFirst().split(separator: "|"), turn) }
    }

    func settle(_ place: KeyState, _ turn: Turn) throws(ProcessFailure) {
        let key = String(decoding: place.key, as: UTF8.self)
        let value = place.value.map { String(decoding: $0, as: UTF8.self) }
        let origin = Origin(id: Array("cell \(key)".utf8), offset: 70 + turn.offset, timestamp: turn.recordClock - 1)
        let words = (value ?? "gone").split(separator: " ").map(String.init)
        switch words[0] {
        case "gone": turn.emit(Self.cells, as: origin, key: place.key.span, value: nil)
        case "zero":
            place.delete()
            turn.emit(Self.cells, as: origin, key: place.key.span, value: nil)
        case "bad":
            place.delete()
            turn.emit(Self.cells, as: origin, key: place.key.span, value: place.key.span)
            throw ProcessFailure("bad", "on demand")
        case "huge":
            turn.emit(Self.cells, as: origin, key: nil, value: [UInt8](repeating: 0, count: Turn.limitBytes + 1).span)
        case "look": _ = try state(words[1], turn)
        default: turn.emit(Self.cells, as: origin, key: place.key.span, value: Array(value!.utf8).span)
        }
    }

    private func run(_ statements: [Substring], _ turn: Turn) throws(ProcessFailure) {
        for statement in statements {
            let words = statement.split(separator: " ", maxSplits: 2).map(String.init)
            let rest = words.dropFirst().map(\.self)
            switch words[0] {
            case "put": try state(rest[0], turn).put(Array(rest[1].utf8).span)
            case "delete": try state(rest[0], turn).delete()
            case "tell": tell(rest.joined(separator: " "), turn)
            case "wake":
                let numbers = rest[1].split(separator: " ").map { Int64($0)! }
                try state(rest[0], turn).setTimer(UInt8(numbers[0]), due: numbers[1])
            case "cancel": try state(rest[0], turn).setTimer(UInt8(rest[1])!, due: nil)
            case "due":
                let due = try state(rest[0], turn).due(UInt8(rest[1])!)
                tell("\(rest[0]) \(rest[1]): \(due.map(String.init) ?? "none")", turn)
            case "many":
                for number in 0..<Int(rest[0])! {
                    let place = try state("many-\(number)", turn)
                    place.put([1].span)
                    place.setTimer(0, due: Int64(rest[1])!)
                }
            case "note":
                let numbers = [turn.clock, turn.recordClock, turn.offset, Int64(turn.emitted)]
                let text = numbers.map(String.init).joined(separator: "/")
                try state(rest[0], turn).put(Array(text.utf8).span)
            case "fail": throw ProcessFailure(rest[0], "on demand")
            default: throw ProcessFailure("no_statement", words[0])
            }
        }
    }

    private func state(_ key: String, _ turn: Turn) throws(ProcessFailure) -> KeyState {
        let key = Array(key.utf8)
        return try turn.state(key.span)
    }

    private func tell(_ text: String, _ turn: Turn) {
        let (key, value) = (Array("told".utf8), Array("\(text) @\(turn.clock)".utf8))
        turn.emit(0, key: key.span, value: value.span)
    }
}
