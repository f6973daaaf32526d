import LogTestKit
import Testing

@testable import Log

/// Key and value of a record, with nulls.
private struct Pair: Equatable {
    var key: [UInt8]?
    var value: [UInt8]?

    init(_ key: [UInt8]?, _ value: [UInt8]?) {
        self.key = key
        self.value = value
    }

    /// Copies what lies at these addresses now.
    init(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        self.init(
            key.baseAddress == nil ? nil : [UInt8](key), value.baseAddress == nil ? nil : [UInt8](value))
    }
}

/// What a log keeps of a batch to read it later.
private struct Reading {
    let memory: OutputMemory
    let places: [(UnsafeRawBufferPointer, UnsafeRawBufferPointer)]
    let expected: [Pair]

    init(_ batch: OutputBatch) {
        memory = batch.memory
        places = (0..<batch.count).map { batch.withRecord($0) { ($0, $1) } }
        expected = places.map { Pair($0, $1) }
    }

    var isUnchanged: Bool { withExtendedLifetime(memory) { places.map { Pair($0, $1) } == expected } }
}

private struct Watched {
    weak var memory: OutputMemory?

    init(_ memory: OutputMemory) { self.memory = memory }
}

@Suite struct `A batch of outputs` {
    private func add(_ key: [UInt8]?, _ value: [UInt8]?, to batch: OutputBatch) {
        batch.append(topic: 0, partition: 0, timestamp: 0, key: key, value: value)
    }

    private func pairs(of batch: OutputBatch) -> [Pair] {
        (0..<batch.count).map { batch.withRecord($0) { Pair($0, $1) } }
    }

    @Test func `is filled again without writing over what somebody reads`() {
        let batch = OutputBatch()
        add([1], [2, 3], to: batch)
        let reading = Reading(batch)
        batch.removeAll()
        add([9], [8, 7], to: batch)
        #expect(pairs(of: batch) == [Pair([9], [8, 7])])
        #expect(reading.isUnchanged)
    }

    @Test func `rolls back without writing over what somebody reads`() {
        let batch = OutputBatch()
        add([1], [2], to: batch)
        let mark = batch.mark
        add([3], [4], to: batch)
        let reading = Reading(batch)
        batch.rollBack(to: mark)
        add([5], [6], to: batch)
        #expect(pairs(of: batch) == [Pair([1], [2]), Pair([5], [6])])
        #expect(reading.isUnchanged)
    }

    @Test func `grows without moving what somebody reads`() {
        let batch = OutputBatch()
        add([1], [2], to: batch)
        let reading = Reading(batch)
        let large = [UInt8](repeating: 7, count: 100_000)
        add(nil, large, to: batch)
        #expect(pairs(of: batch) == [Pair([1], [2]), Pair(nil, large)])
        #expect(reading.isUnchanged)
    }

    @Test func `uses memory again that nobody reads any more`() {
        let batch = OutputBatch()
        add([1], [2], to: batch)
        let first = ObjectIdentifier(batch.memory)
        batch.removeAll()
        #expect(ObjectIdentifier(batch.memory) == first)
        add([1], [2], to: batch)
        var reading: Reading? = Reading(batch)
        batch.removeAll()
        #expect(ObjectIdentifier(batch.memory) != first)
        #expect(reading?.isUnchanged == true)
        reading = nil
        add([3], [4], to: batch)
        let second = Reading(batch)
        batch.removeAll()
        #expect(ObjectIdentifier(batch.memory) == first)
        #expect(second.isUnchanged)
    }

    /// Like a worker: several pieces, then a larger one, and all of it is read until the end of the transaction.
    @Test(arguments: [(1 << 20, 400_000), (100_000, 100_000), (0, 0)])
    func `keeps no more memory for later than it may, and not all of it for the largest piece`(_ may: Int, _ does: Int)
    {
        let batch = OutputBatch(spareBytes: may)
        let value = [UInt8](repeating: 1, count: 1_000)
        var watched: [Watched] = []
        for _ in 0..<50 {
            var readings: [OutputMemory] = []
            for size in [10, 11, 12, 10, 11, 12, 10, 60] {
                for _ in 0..<size { add(nil, value, to: batch) }
                readings.append(batch.memory)
                if !watched.contains(where: { $0.memory === batch.memory }) { watched.append(Watched(batch.memory)) }
                batch.removeAll()
            }
            readings = []
            let kept = watched.compactMap(\.memory).filter { $0 !== batch.memory }
            #expect(kept.reduce(0) { $0 + $1.capacity } <= does)
            #expect(kept.isEmpty == (may == 0))
        }
        // All of it is used again: the first cycle made it.
        if may > does { #expect(watched.count <= 10) }
    }

    @Test func `begins in memory that has room for as much as before`() {
        let batch = OutputBatch()
        let value = [UInt8](repeating: 1, count: 1_000)
        var readings: [OutputMemory] = []
        for _ in 0..<3 {
            for _ in 0..<50 { add(nil, value, to: batch) }
            readings.append(batch.memory)
            batch.removeAll()
            #expect(batch.memory.capacity >= 50_000)
        }
        // Nobody reads them any more, so they are used again, in whichever order.
        let known = Set(readings.map(ObjectIdentifier.init))
        readings = []
        for _ in 0..<50 { add(nil, value, to: batch) }
        let reading = batch.memory
        batch.removeAll()
        #expect(known.contains(ObjectIdentifier(batch.memory)))
        withExtendedLifetime(reading) {}
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `has its records, and readers have theirs, whatever is added, removed and rolled back`(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        let batch = OutputBatch()
        var now: [Pair] = []
        var marks: [(OutputBatch.Mark, Int)] = []
        var (readings, made): ([Reading], Int) = ([], 0)
        func bytes() -> [UInt8]? {
            let count = Int.random(in: -1...300, using: &dice)
            if count < 0 { return nil }
            return [UInt8](repeating: UInt8(truncatingIfNeeded: dice.next()), count: count)
        }
        for _ in 0..<200 {
            switch Int.random(in: 0..<20, using: &dice) {
            case 0..<12:
                let pair = Pair(bytes(), bytes())
                add(pair.key, pair.value, to: batch)
                now.append(pair)
            case 12: marks.append((batch.mark, now.count))
            case 13, 14:
                guard let (mark, count) = marks.popLast() else { continue }
                batch.rollBack(to: mark)
                now.removeLast(now.count - count)
            case 15:
                batch.removeAll()
                now = []
                marks = []
            case 16, 17:
                readings.append(Reading(batch))
                made += 1
            default: if let index = readings.indices.randomElement(using: &dice) { readings.remove(at: index) }
            }
            guard pairs(of: batch) == now, readings.allSatisfy(\.isUnchanged) else {
                Issue.record("seed \(seed): bytes of a record have changed")
                return
            }
        }
        #expect(made > 5)
    }
}
