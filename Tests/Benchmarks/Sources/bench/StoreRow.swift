// The store on disk, compared with the same loops in C.

import CLoops
import KafkaTestKit
import Platform
import RocksStore
import Store

private let keys: Int64 = 1_000_000
private let valueBytes: Int64 = 500
/// About as much as a worker commits at once.
private let batchKeys: Int64 = 1000
/// The default of `state.cache.bytes`: room for half of the values.
private let cacheBytes: Int64 = 256 << 20
/// Alternating runs of each side; the median counts.
private let rounds = 5
/// What the layer may cost at most, as a multiple of the C loop.
private let reach = 1.15

/// `store-put-c|store-put-swift|store-get-c|store-get-swift DIRECTORY`
func storeLoop(_ arguments: [String]) throws -> Int64 {
    guard arguments.count == 2 else {
        printMessage("usage: bench run store-put-c|store-put-swift|store-get-c|store-get-swift DIRECTORY")
        exitProcess(2)
    }
    let directory = arguments[1]
    // Partition 0, named as `RocksStores` does.
    return switch arguments[0] {
    case "store-put-c": bench_store_put("\(directory)/0", cacheBytes, keys, batchKeys, valueBytes)
    case "store-get-c": bench_store_get("\(directory)/0", cacheBytes, keys, valueBytes)
    case "store-put-swift": try put(directory)
    default: try get(directory)
    }
}

private func open(_ directory: String) throws -> any PartitionStore {
    try RocksStores(directory: directory, cache: StoreCache(bytes: Int(cacheBytes))).open(0)
}

private func write(_ number: Int64, to key: inout [UInt8]) {
    var rest = number
    for place in stride(from: 15, through: 0, by: -1) {
        key[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
    }
}

private func put(_ directory: String) throws -> Int64 {
    let store = try open(directory)
    let value = [UInt8](repeating: UInt8(ascii: "v"), count: Int(valueBytes))
    var key = [UInt8](repeating: 0, count: 16)
    let changes = StoreChanges()
    let start = bench_cpu_microseconds()
    for n in 0..<keys {
        write(bench_store_key(n, keys), to: &key)
        changes.put(key.span, value.span)
        if n % batchKeys == batchKeys - 1 {
            withUnsafeBytes(of: n) { changes.note.append(contentsOf: $0) }
            try store.write(changes, .process)
            changes.removeAll()
        }
    }
    let spent = bench_cpu_microseconds() - start
    try store.close()
    return spent
}

private func get(_ directory: String) throws -> Int64 {
    let store = try open(directory)
    var key = [UInt8](repeating: 0, count: 16)
    var value: [UInt8] = []
    var found: Int64 = 0
    let start = bench_cpu_microseconds()
    for n in 0..<keys {
        write(bench_store_key(n * 7, keys), to: &key)
        if try store.read(key.span, into: &value), value.count == Int(valueBytes), value.last == UInt8(ascii: "v") {
            found += 1
        }
    }
    let spent = bench_cpu_microseconds() - start
    try store.close()
    return found == keys ? spent : -1
}

func measureStore(_ report: inout Report) async throws {
    report.note(
        "CPU microseconds per operation (getrusage of the process), median [min-max] of \(rounds) alternating runs; "
            + "\(keys) keys, values of \(valueBytes) bytes, cache of \(cacheBytes >> 20) MiB")
    var (putC, putSwift): ([Double], [Double]) = ([], [])
    for round in 1...rounds {
        putC.append(try await measureFresh("store-put-c"))
        putSwift.append(try await measureFresh("store-put-swift"))
        printMessage("store put \(round)/\(rounds)")
    }
    report.judge(
        "put", "\(batchKeys) in a write, C \(figures(putC)), Perennial \(figures(putSwift))",
        ratio: median(putSwift) / median(putC), .atMost(reach))
    let scratch = try ScratchDirectory("bench-store")
    defer { withExtendedLifetime(scratch) {} }
    _ = try await measure("store-put-c", scratch.path)
    // The first opening reads the write-ahead log; after that the page cache is warm for both.
    _ = try await measure("store-get-c", scratch.path)
    var (getC, getSwift): ([Double], [Double]) = ([], [])
    for round in 1...rounds {
        getC.append(try await measure("store-get-c", scratch.path))
        getSwift.append(try await measure("store-get-swift", scratch.path))
        printMessage("store get \(round)/\(rounds)")
    }
    report.judge(
        "get", "uniform keys, C \(figures(getC)), Perennial \(figures(getSwift))",
        ratio: median(getSwift) / median(getC), .atMost(reach))
}

private func measure(_ loop: String, _ directory: String) async throws -> Double {
    try await measureLoop([loop, directory]) / Double(keys)
}

/// Runs in a directory of its own, which is deleted after the run.
private func measureFresh(_ loop: String) async throws -> Double {
    let scratch = try ScratchDirectory("bench-store")
    // Holding only the path would not keep the directory.
    defer { withExtendedLifetime(scratch) {} }
    return try await measure(loop, scratch.path)
}
