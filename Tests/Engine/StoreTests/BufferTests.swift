import KafkaTestKit
import Platform
import TestTraits
import Testing

@testable import RocksStore
@testable import Store

@Suite(.ownThreads) struct `The write buffers of a process` {
    private static let budget = 8 << 20
    private let scratch: ScratchDirectory
    private let cache = StoreCache(bytes: 1 << 20, bufferBytes: budget)
    private let stores: RocksStores

    init() throws {
        scratch = try ScratchDirectory("store-buffers")
        stores = try RocksStores(directory: scratch.path, cache: cache)
    }

    private func write(_ kilobytes: Int, _ number: Int, to store: any PartitionStore) throws {
        let changes = StoreChanges()
        for key in 0..<kilobytes {
            changes.put(Array("\(number) \(key)".utf8).span, [UInt8](repeating: 1, count: 1000).span)
        }
        changes.note = Array("\(number)".utf8)
        try store.write(changes, .none)
    }

    @Test func `have one budget for all stores`() throws {
        let all = try (0..<12).map { try stores.open($0) }
        var most = 0
        for number in 1...600 {
            try write(100, number, to: all[number % 12])
            most = max(most, cache.bufferBytes)
        }
        // A write is 100 KB. What is being written to files counts as well, so this looks at the whole budget.
        #expect(most <= Self.budget, "\(most)")
        #expect(most > Self.budget / 2, "\(most)")
        for store in all { try store.close() }
        #expect(cache.bufferBytes == 0)
    }

    @Test func `of quiet stores are left alone, and the largest is flushed`() throws {
        let (quiet, busy) = (try stores.open(0), try stores.open(1))
        try write(10, 1, to: quiet)
        for number in 1...100 { try write(100, number, to: busy) }
        #expect(try quiet.lastingText() == nil)
        let lasting = try #require(try busy.lastingText().flatMap { Int($0) })
        #expect(lasting > 20)
        try quiet.close()
        try busy.close()
    }

    /// Its thread may never write to it again.
    @Test func `of a store that nobody writes to make room for others`() throws {
        let (quiet, busy) = (try stores.open(0), try stores.open(1))
        for number in 1...15 { try write(100, number, to: quiet) }
        #expect(try quiet.lastingText() == nil)
        let others = try (2..<12).map { try stores.open($0) }
        for number in 1...80 { try write(100, number, to: number % 11 == 0 ? busy : others[number % 10]) }
        try quiet.waitUntilLasting("15")
        #expect(try quiet.lastingText() == "15")
        for store in [quiet, busy] + others { try store.close() }
    }

    /// Also an empty buffer takes memory. If all of them together were above the budget, each write would make a file.
    @Test func `of many quiet stores are within the budget of a small plan`() throws {
        let count = 64
        let cache = StoreCache(bytes: 1 << 20, bufferBytes: count * 256 << 10, stores: count)
        let stores = try RocksStores(directory: "\(scratch.path)/many", cache: cache)
        let all = try (0..<count).map { try stores.open(Int32($0)) }
        for number in 1...3 {
            for store in all { try write(1, number, to: store) }
        }
        for store in all { #expect(try store.lastingText() == nil) }
        for store in all { try store.close() }
    }

    @Test(arguments: [(12 << 20, 3, 3 << 20), (1 << 30, 12, 8 << 20), (64 << 20, 256, 1 << 20), (1000, 12, 256 << 10)])
    func `have a largest size`(_ budget: Int, _ stores: Int, _ size: Int) {
        #expect(StoreCache(bytes: 1 << 20, bufferBytes: budget, stores: stores).bufferSize == size)
    }
}

@Suite struct `The blocks of a process` {
    /// An index of half a MiB would fill a shard of RocksDB's own choice.
    @Test(arguments: [(0, 1), (1, 1), (15, 1), (16, 2), (31, 2), (32, 4), (52, 4), (1 << 20, 4)])
    func `are in four shards at most, of at least 8 MiB`(_ mebibytes: Int, _ shards: Int) {
        #expect(1 << Int(StoreCache.shardBits(of: mebibytes << 20)) == shards)
    }
}
