// What somebody writes who wants a new consumer. Everything else of a worker is the engine's.

public import Log

/// The logic of a worker: a function of a record, the state and the partition's clock, and of nothing else. It reads no wall
/// clock, no random number and no hash order, so that two runs over one partition give the same bytes. Each thread of a worker
/// has an instance of its own.
public protocol Processor {
    var definition: WorkerDefinition { get }

    /// Deals with one record of a known type. What it has written and emitted before it throws is taken back, and the record
    /// goes to the dead letters.
    func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure)

    /// Whose a row of a table from outside is: its key in the state, from which its partition follows. Whoever wrote it may have
    /// given it another key. What it throws is the row's way to the dead letters.
    func identity(ofRow record: borrowing RecordView) throws(ProcessFailure) -> [UInt8]
    /// A timer's time has come; the timer is gone already. The turn's clock is the due time.
    func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure)

    /// The last word on a key that the definition says is settled, before a commit that changes it: for an output that is
    /// wanted once however often the key has changed. Called in the order of the keys' bytes, for keys that are gone, too; for
    /// those that came and went between two commits not. It emits with an origin, and may delete the state; any other change
    /// would depend on where commits fall. What it throws is taken back and goes to the dead letters, and the rest is
    /// committed; the key is settled again when it changes again.
    func settle(_ place: KeyState, _ turn: Turn) throws(ProcessFailure)

    /// The partition is restored, and its records follow: for what shows how it stands, as a gauge. The turn's clock is that of
    /// the last commit; state may be read, nothing may be changed or emitted. What it throws says why nothing of the partition
    /// may be dealt with: none of its records is read, and the worker says so, until it is opened again.
    func opened(_ turn: Turn) throws(ProcessFailure)

    /// The partition was given up or lost, or the worker stops. Also when its opening has failed.
    func closed(_ partition: Int32)
}

extension Processor {
    public func settle(_ place: KeyState, _ turn: Turn) throws(ProcessFailure) {}

    public func opened(_ turn: Turn) throws(ProcessFailure) {}

    public func closed(_ partition: Int32) {}

    public func identity(ofRow record: borrowing RecordView) throws(ProcessFailure) -> [UInt8] {
        guard let key = record.copyOfKey() else { throw ProcessFailure("no_key", "a row has a key") }
        return key
    }

    public func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        throw ProcessFailure("no_such_timer", "nothing sets timers of kind \(timer.kind)")
    }
}

/// Why a record, a timer or a key cannot be processed.
public struct ProcessFailure: Error, Equatable, CustomStringConvertible {
    /// From a small fixed list: it becomes a label and a header.
    public var reason: String
    public var detail: String

    public init(_ reason: String, _ detail: String = "") {
        self.reason = reason
        self.detail = detail
    }

    public var description: String { detail.isEmpty ? reason : "\(reason): \(detail)" }

    /// Those that the engine itself gives.
    static let reasonsOfEngine = [
        "crash", "no_key", "no_such_timer", "no_type", "schema", "store", "too_large", "type",
    ]
}

/// A timer of a key. A key has at most one of each kind; setting it again moves it.
public struct TimerName: Sendable, Hashable {
    public var key: [UInt8]
    public var kind: UInt8

    public init(key: [UInt8], kind: UInt8) {
        self.key = key
        self.kind = kind
    }
}

/// Where an output comes from that is emitted when a key is settled. The records of a cycle do not say: how many there are of
/// them is nothing that a replay would repeat.
public struct Origin {
    /// The header `id`.
    public var id: [UInt8]
    /// Of the event that the header `source` names.
    public var offset: Int64
    public var timestamp: Int64

    public init(id: [UInt8], offset: Int64, timestamp: Int64) {
        self.id = id
        self.offset = offset
        self.timestamp = timestamp
    }
}

/// What a worker reads, writes and is called.
public struct WorkerDefinition: Sendable {
    /// For logs, metrics and the names of local files.
    public var name: String
    public var group: String
    /// The one topic that moves the clock of its partitions.
    public var events: InputTopic
    /// Merged per key; they move no clock, and an output that rests on a row carries it.
    public var tables: [InputTopic] = []
    /// `emit` names them by their index.
    public var outputs: [OutputTopic]
    public var changelog: String
    public var deadLetters: String
    /// Of every topic of the worker.
    public var partitions: Int32
    /// Of the values in the state: written, and up to which version back they are read.
    public var stateFormat: UInt8 = 1
    public var oldestReadableFormat: UInt8 = 1
    /// Keys of the state that begin with this byte are settled before each commit that changes them; nil: none.
    public var settledPrefix: UInt8?
    /// `perennial/<version>`, the header `app` of what is written.
    public var app: String
    /// Why its processor gives up records, timers or keys: the first one of each has to be seen as one more than none.
    public var failureReasons: [String] = []
    /// Hash of the settings that decide the content, the header `rules`.
    public var rules: String?
    /// A replay: a live worker of the same inputs does what has to be done to them. A row in the wrong partition is skipped: the
    /// live worker publishes it again in the right one, and the copy is dealt with there.
    public var isShadow = false
    /// What records of an input before this place cause goes into the state, and into no output. Partitions that are not named put
    /// out everything.
    public var silentBefore: [TopicPartition: NextOffset] = [:]

    public init(
        name: String, group: String, events: InputTopic, outputs: [OutputTopic], changelog: String, deadLetters: String,
        partitions: Int32, app: String
    ) {
        self.name = name
        self.group = group
        self.events = events
        self.outputs = outputs
        self.changelog = changelog
        self.deadLetters = deadLetters
        self.partitions = partitions
        self.app = app
    }

    /// Events first: the index of a record's topic.
    var inputs: [InputTopic] { [events] + tables }
    /// Events first.
    public var inputTopics: [String] { inputs.map(\.topic) }

    func silentBefore(in partition: Int32) -> [NextOffset] {
        inputs.map { silentBefore[TopicPartition($0.topic, partition)] ?? NextOffset(0) }
    }
}

public struct InputTopic: Sendable {
    /// A value of the header `type`, and the greatest version of its schema that this build reads.
    public struct Kind: Sendable {
        let record: RecordKind

        public init(_ type: String, version: Int) { record = RecordKind(type, version: version) }
    }

    public var topic: String
    public var kinds: [Kind]
    /// Of records without the header, as other people's programs write them; nil: they are dead letters.
    public var kindWithoutHeader: Kind?
    /// Other people's programs write it: nothing in it stops a partition, whatever and however much of it is wrong, and its
    /// keys are not believed (`Processor.identity`). Of a table.
    public var isFromOutside = false

    public init(_ topic: String, kinds: [Kind], withoutHeader: Kind? = nil) {
        self.topic = topic
        self.kinds = kinds
        kindWithoutHeader = withoutHeader
    }
}

public struct OutputTopic: Sendable {
    public var topic: String
    /// Header `type` of its records.
    public var type: String
    /// Header `schema`.
    public var schema: String

    public init(_ topic: String, type: String, schema: String) {
        self.topic = topic
        self.type = type
        self.schema = schema
    }
}
