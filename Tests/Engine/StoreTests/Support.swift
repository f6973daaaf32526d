import KafkaTestKit
import Platform
import RocksStore
import Store
import Synchronization
import Testing

/// The implementations that must keep the promises of `PartitionStore`.
enum StoreKind: CaseIterable, Sendable, CustomTestStringConvertible {
    case rocks, memory
    var testDescription: String { "\(self)" }
}

/// A place with stores: empty at first, deleted when the tests are over.
struct Place {
    let stores: any PartitionStores
    /// Until the process ends, because a store of a test may outlive its place.
    private static let directories = Mutex<[ScratchDirectory]>([])

    init(_ kind: StoreKind) throws {
        switch kind {
        case .memory:
            stores = MemoryStores(disk: MemoryDisk())
        case .rocks:
            let scratch = try ScratchDirectory("store")
            Self.directories.withLock { $0.append(scratch) }
            stores = try RocksStores(directory: scratch.path, cache: StoreCache(bytes: 1 << 20))
        }
    }
}

extension PartitionStore {
    func value(_ key: [UInt8]) throws(StoreFault) -> [UInt8]? {
        var value: [UInt8] = [9, 9, 9]
        return try read(key.span, into: &value) ? value : nil
    }
    func value(_ key: String) throws(StoreFault) -> String? {
        try value(Array(key.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }
    func noteText() throws(StoreFault) -> String? { try note().map { String(decoding: $0, as: UTF8.self) } }
    func lastingText() throws(StoreFault) -> String? { try lastingNote().map { String(decoding: $0, as: UTF8.self) } }
    /// A flush goes on in the background.
    func waitUntilLasting(_ note: String) throws(StoreFault) {
        for _ in 0..<5000 where try lastingText() != note { pause(for: .milliseconds(2)) }
    }

    /// Writes all of it at once.
    func write(
        _ values: [(String, String?)] = [], add: [TimerEntry] = [], remove: [TimerEntry] = [], note: String = "",
        _ durability: StoreDurability = .process
    ) throws(StoreFault) {
        let changes = StoreChanges()
        for (key, value) in values {
            if let value {
                changes.put(Array(key.utf8).span, Array(value.utf8).span)
            } else {
                changes.delete(Array(key.utf8).span)
            }
        }
        for timer in remove { changes.removeTimer(due: timer.due, key: timer.key.span, kind: timer.kind) }
        for timer in add { changes.addTimer(due: timer.due, key: timer.key.span, kind: timer.kind) }
        changes.note = Array(note.utf8)
        try write(changes, durability)
    }

    func timers(dueBy moment: Int64 = .max) throws(StoreFault) -> [TimerEntry] {
        try timers(after: nil, dueBy: moment, limit: .max)
    }
    func firstTimer() throws(StoreFault) -> Int64? { try timers(after: nil, dueBy: .max, limit: 1).first?.due }
}

extension TimerEntry {
    init(_ due: Int64, _ key: String = "key", _ kind: UInt8 = 0) {
        self.init(due: due, key: Array(key.utf8), kind: kind)
    }
}

func cause(_ body: () throws -> Void) -> StoreFault.Cause? { fault(body)?.cause }
func fault(_ body: () throws -> Void) -> StoreFault? {
    do {
        try body()
        return nil
    } catch { return error as? StoreFault }
}

/// A generator that is determined by its seed.
struct Dice: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        // SplitMix64.
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// Up to four bytes that a wrong order would confuse: zeros, the greatest, neighbours.
    mutating func awkwardKey() -> [UInt8] {
        (0..<Int.random(in: 0...4, using: &self)).map { _ in [0, 0, 1, 0x61, 0xfe, 0xff].randomElement(using: &self)! }
    }
    mutating func awkwardTimer() -> TimerEntry {
        TimerEntry(
            due: [.min, .min + 1, -1, 0, 1, 255, 256, .max - 1, .max].randomElement(using: &self)!, key: awkwardKey(),
            kind: [0, 1, 0xff].randomElement(using: &self)!)
    }
}
