// The work that no worker with its state on disk can avoid, whatever its engine and its domain: it reads each notification, reads
// its state from RocksDB and writes it back.

import JSON
import KafkaTestKit
import Log
import Platform
import RocksStore
import Store

/// A partition's changes are written when they reach this size, as in a worker of twelve partitions with the default cache.
private let bytesPerWrite = 5 << 20

/// One thread beside RocksDB's own; no log, no computing. Each subscription once, in the order of the rows on Kafka.
func runLimit(_ worker: MeasuredWorker, records: Int) throws -> RunFigures {
    let scratch = try ScratchDirectory("bench-worker")
    defer { withExtendedLifetime(scratch) {} }
    let stores = try openStores(scratch.path)
    let partitions = try (0..<workerPartitions).map { try StoredPartition(stores.open($0)) }
    var changelog = Changelog(worker)
    for n in 0..<records {
        changelog.make(n)
        let partition = partitions[Int(changelog.partition(of: workerPartitions))]
        // After the byte that separates a changelog's entries from its notes.
        try partition.put(changelog.key.span.extracting(droppingFirst: 1), changelog.value.span)
    }
    for partition in partitions { try partition.write() }

    var notifications = Notifications()
    notifications.make(0, of: 0)
    let notification = notifications.value
    var json = JSONDocument()
    var state: [UInt8] = []
    let meter = Meter()
    meter.start()
    for n in 0..<records {
        try json.read(notification.span)
        let key = Notifications.key(of: scattered(n, of: records))
        let partition = partitions[Int(Partitioner.partition(of: key.span, count: workerPartitions))]
        guard try partition.store.read(key.span, into: &state) else { throw NotInTime("a state", limit: .zero) }
        try partition.put(key.span, state.span)
    }
    for partition in partitions { try partition.write() }
    meter.stop()
    for partition in partitions { try partition.store.close() }
    return RunFigures(try requireSpending(meter, within: .zero))
}

private final class StoredPartition {
    let store: any PartitionStore
    private let changes = StoreChanges()

    init(_ store: any PartitionStore) { self.store = store }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) throws(StoreFault) {
        changes.put(key, value)
        if changes.bytes.count > bytesPerWrite { try write() }
    }

    /// As a worker writes.
    func write() throws(StoreFault) {
        try store.write(changes, .none)
        changes.removeAll()
    }
}
