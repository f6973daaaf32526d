// How a worker runs, and why it ends.

public import Log
public import Store

/// Options that affect how a worker runs, but not what it writes.
public struct WorkerOptions: Sendable {
    /// `Replica.identity`.
    public var identity: String
    /// No other process can have the identity.
    public var isDynamic = false
    /// Its partitions wait for a restart. If false, it leaves the group when its session ends.
    public var keepsPlace = true
    public var thread = 0
    /// A cycle of a drained input is committed when this time has passed since the last commit: records that arrive
    /// meanwhile share a transaction, and Kafka has written the markers of the last one.
    public var commitInterval: Duration = .milliseconds(20)
    /// A cycle of a backlog is committed after this time, or `commitInterval` if that is longer...
    public var backlogInterval: Duration = .milliseconds(100)
    /// ...or this many records...
    public var recordsPerCycle = 10_000
    /// ...or this many bytes of changed state or outputs.
    public var bytesPerCycle = 32 << 20
    /// Outputs are appended with the cycle's changelog, or as soon as they have this many bytes. The earlier a
    /// transaction includes a partition, the more often it must ask the broker to add partitions.
    public var bytesPerAppend = 1 << 20
    /// Committed changes are written to the stores after this time, or when they use half of the cache or 8 MiB, or when a
    /// store lacks as many offsets of the changelog as `flush` allows. Until then only memory and the changelog have them.
    public var storeInterval: Duration = .seconds(10)
    /// When a store is flushed, so that a restore after a kill is short.
    public var flush = FlushRule()
    /// Cache for all partitions of this thread together.
    public var cacheBytes = 128 << 20
    /// Approximate memory for records that are fetched and not processed yet.
    public var readAheadBytes = 24 << 20
    public var sessionTimeout: Duration = .seconds(30)
    public var transactionTimeout: Duration = .seconds(10)
    /// How long opening is retried if a store cannot be used on this machine (a full disk, a missing permission). Then
    /// the process ends, and a healthy process gets the partition.
    public var openingPatience: Duration = .seconds(300)
    /// How long to wait for a store that another process has open. Usually that is a frozen replica on this machine.
    public var lockPatience: Duration = .seconds(10)
    /// Where such a partition is restored instead. nil: the worker keeps waiting.
    public var aside: (any PartitionStores)?
    /// Shared by the threads of a process.
    var storeFaults = StoreFaults()
    /// Records of the inputs at or after these offsets are not processed. A partition that is not listed has no bound.
    public var bounds: [TopicPartition: NextOffset] = [:]
    /// Set if another part of the process acts on what this worker writes, and needs to know what the worker owns.
    public var ownership: Ownership?
    /// Where crashes are noted; nil: they are not noted.
    public var crashNotes: (any CrashNotesProvider)?
    /// Limit of speed; nil: the speed is not limited.
    public var pace: Pace?

    public init(identity: String) { self.identity = identity }
}

/// Why a worker cannot continue, for the person who must help.
public struct WorkerEnd: Error, Equatable, CustomStringConvertible {
    public var description: String

    init(_ words: String) { description = words }
}
