// A process that writes into a store until it is killed.

import Glibc
import Platform
import RocksStore
import Store

/// `write DIRECTORY DURABILITY PADDING`: continues with the number that the store has, and prints each number after its write, with
/// the number that a crash would leave.
/// DURABILITY: `process`, `none`, `mixed`: nine of ten writes with `none`, or `flushed`: all with `none`, and each tenth is flushed.
/// `hold DIRECTORY`: opens the store, says so and waits to be killed.
/// `fill DIRECTORY DURABILITY BYTES`: limits files to this size, and writes until a write fails.
func runProbe(_ arguments: [String]) -> ExitCode {
    do throws(StoreFault) {
        switch (arguments.first, arguments.count) {
        case ("write", 4):
            guard let padding = Int(arguments[3]) else { return .wrongUsage }
            try write(arguments[1], arguments[2], padding)
        case ("hold", 2):
            let store = try open(arguments[1])
            printData("open")
            while true { pause(for: .seconds(1)) }
            try store.close()
        case ("fill", 4):
            guard let bytes = UInt(arguments[3]) else { return .wrongUsage }
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: bytes, rlim_max: bytes)
            guard setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else { return .gaveUp }
            try write(arguments[1], arguments[2], 10_000)
        default: return .wrongUsage
        }
        return .done
    } catch {
        printMessage("\(error.cause.rawValue): \(error)")
        return .gaveUp
    }
}

private func open(_ directory: String) throws(StoreFault) -> any PartitionStore {
    try RocksStores(directory: directory, cache: StoreCache(bytes: 1 << 20)).open(0)
}

/// Write n puts n under eight keys that every write has and under one key of its own, and moves one timer to n.
private func write(_ directory: String, _ durability: String, _ padding: Int) throws(StoreFault) -> Never {
    let store = try open(directory)
    let changes = StoreChanges()
    var number = try store.note().map { Int(String(decoding: $0, as: UTF8.self))! } ?? 0
    let tail = [UInt8](repeating: 0x2e, count: padding)
    while true {
        number += 1
        let value = Array("\(number) ".utf8) + tail
        changes.removeAll()
        for key in 0..<8 { changes.put(Array("shared \(key)".utf8).span, value.span) }
        changes.put(Array("own \(number)".utf8).span, value.span)
        changes.removeTimer(due: Int64(number - 1), key: Array("timer".utf8).span, kind: 0)
        changes.addTimer(due: Int64(number), key: Array("timer".utf8).span, kind: 0)
        changes.note = Array("\(number)".utf8)
        let isLogged = durability == "process" || (durability == "mixed" && number % 10 == 0)
        try store.write(changes, isLogged ? .process : .none)
        if durability == "flushed", number % 10 == 0 {
            try store.beginFlush()
            while try lasting(store) < number { pause(for: .milliseconds(1)) }
        }
        printData("\(number) \(try lasting(store))")
    }
}

private func lasting(_ store: any PartitionStore) throws(StoreFault) -> Int {
    try store.lastingNote().map { Int(String(decoding: $0, as: UTF8.self))! } ?? 0
}
