// The protocol that a new consumer implements. The engine does the rest.

public import Log

/// The logic of a worker: a function of only a record, the state and the partition's clock. It must not read the wall
/// clock, random numbers or the order of hashes, so that two runs over one partition give the same bytes. Each thread
/// of a worker has its own instance.
public protocol Processor {
    var definition: WorkerDefinition { get }

    /// Processes one record of a known type. If it throws, its changes and outputs are rolled back, and the record goes
    /// to the dead letters.
    func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure)

    /// The key in the state to which a row of a table from outside belongs; the key determines the row's partition. The
    /// row's writer may have given it another key. If this throws, the row goes to the dead letters.
    func identity(ofRow record: borrowing RecordView) throws(ProcessFailure) -> [UInt8]
    /// The timer is due and already removed. The turn's clock is the due time.
    func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure)

    /// Called before a commit that changes a key with the definition's `settledPrefix`: for an output that is wanted
    /// once, however often the key has changed. Called in the order of the keys' bytes, and for deleted keys too, but
    /// not for keys that were created and deleted between two commits. It emits with an origin, and may delete the
    /// state; any other change would depend on where commits fall. If it throws, its changes are rolled back and go to
    /// the dead letters, and the rest is committed. The key is settled again when it changes again.
    func settle(_ place: KeyState, _ turn: Turn) throws(ProcessFailure)

    /// The partition is restored, and its records follow: for values that show the state, such as a gauge. The turn's
    /// clock is that of the last commit. The state may be read, but nothing may be changed or emitted. If it throws, no
    /// record of the partition is processed and the worker reports the reason, until the partition is opened again.
    func opened(_ turn: Turn) throws(ProcessFailure)

    /// The partition was revoked or lost, or the worker stops. Also called when opening has failed.
    func closed(_ partition: Int32)
}

extension Processor {
    public func settle(_ place: KeyState, _ turn: Turn) throws(ProcessFailure) {}

    public func opened(_ turn: Turn) throws(ProcessFailure) {}

    public func closed(_ partition: Int32) {}

    public func identity(ofRow record: borrowing RecordView) throws(ProcessFailure) -> [UInt8] {
        guard let key = record.copyOfKey() else { throw ProcessFailure("no_key", "the row has no key") }
        return key
    }

    public func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        throw ProcessFailure("no_such_timer", "this processor sets no timers of kind \(timer.kind)")
    }
}

/// Why a record, a timer or a key cannot be processed.
public struct ProcessFailure: Error, Equatable, CustomStringConvertible {
    /// From a small fixed list: it becomes a metric label and a header.
    public var reason: String
    public var detail: String

    public init(_ reason: String, _ detail: String = "") {
        self.reason = reason
        self.detail = detail
    }

    public var description: String { detail.isEmpty ? reason : "\(reason): \(detail)" }

    /// Reasons that the engine itself gives.
    static let reasonsOfEngine = [
        "crash", "no_key", "no_such_timer", "no_type", "schema", "store", "too_large", "type",
    ]
}

/// A timer of a key. A key has at most one of each kind. Setting it again moves it.
public struct TimerName: Sendable, Hashable {
    public var key: [UInt8]
    public var kind: UInt8

    public init(key: [UInt8], kind: UInt8) {
        self.key = key
        self.kind = kind
    }
}

/// The source of an output that is emitted when a key is settled. The records of a cycle cannot be the source: a replay
/// would have other cycles.
public struct Origin {
    /// Value of the header `id`.
    public var id: [UInt8]
    /// Offset of the event that the header `source` names.
    public var offset: Int64
    public var timestamp: Int64

    public init(id: [UInt8], offset: Int64, timestamp: Int64) {
        self.id = id
        self.offset = offset
        self.timestamp = timestamp
    }
}

/// A worker's inputs, outputs and names.
public struct WorkerDefinition: Sendable {
    /// The name in logs, metrics and local files.
    public var name: String
    public var group: String
    /// The one topic that moves the clock of its partitions.
    public var events: InputTopic
    /// Merged per key. Tables move no clock, and an output that depends on a row contains it.
    public var tables: [InputTopic] = []
    /// `emit` identifies an output by its index here.
    public var outputs: [OutputTopic]
    public var changelog: String
    public var deadLetters: String
    /// The number of partitions of every topic of the worker.
    public var partitions: Int32
    /// Format of the values in the state: the one written, and the oldest that is read.
    public var stateFormat: UInt8 = 1
    public var oldestReadableFormat: UInt8 = 1
    /// Keys of the state that begin with this byte are settled before each commit that changes them. nil: no key is
    /// settled.
    public var settledPrefix: UInt8?
    /// `perennial/<version>`: the start of the header `app` of outputs.
    public var app: String
    /// The reasons for which its processor rejects records, timers or keys. Each gets a counter at 0, so that its first
    /// rise is visible.
    public var failureReasons: [String] = []
    /// Hash of the settings that determine the contents: the end of the header `app` of outputs.
    public var rules: String?
    /// This worker is a replay: a live worker of the same inputs exists. A replay skips a row in the wrong partition:
    /// the live worker sends it to the right one, and the replay processes the copy there.
    public var isShadow = false
    /// Records of an input before these offsets change the state, but cause no output. In partitions that are not
    /// listed all records cause outputs.
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

    /// The topic of events first. A record's topic is an index into this.
    var inputs: [InputTopic] { [events] + tables }
    /// The topic of events first.
    public var inputTopics: [String] { inputs.map(\.topic) }

    func silentBefore(in partition: Int32) -> [NextOffset] {
        inputs.map { silentBefore[TopicPartition($0.topic, partition)] ?? NextOffset(0) }
    }
}

public struct InputTopic: Sendable {
    /// A type of records, and the greatest version of its schema that this build reads.
    public struct Kind: Sendable {
        let record: RecordKind

        public init(_ type: String, version: Int) { record = RecordKind(type, version: version) }
    }

    public var topic: String
    public var kinds: [Kind]
    /// The kind of records without a header `type`, whatever their `schema` says: other programs write them. nil: the
    /// header `schema` tells the kind, and records without it go to the dead letters.
    public var kindWithoutHeader: Kind?
    /// Other programs write this table: no record in it stops a partition, whatever is wrong and in however many, and
    /// its keys are not trusted (`Processor.identity`).
    public var isFromOutside = false

    public init(_ topic: String, kinds: [Kind], withoutHeader: Kind? = nil) {
        self.topic = topic
        self.kinds = kinds
        kindWithoutHeader = withoutHeader
    }
}

public struct OutputTopic: Sendable {
    public var topic: String
    /// Header `schema` of its records: `<type>/<version>`.
    public var schema: String

    public init(_ topic: String, schema: String) {
        self.topic = topic
        self.schema = schema
    }
}
