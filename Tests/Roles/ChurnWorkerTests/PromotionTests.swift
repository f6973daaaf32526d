import ChurnWorker
import Configuration
import Contract
import JSON
import MakeBelieve
import Runtime
import Testing
import WorkerTestKit
import Zone

private typealias Stage = PromotionStage

extension PromotionStage {
    /// The worker counted days of UTC, and shall count days of Tokyo.
    fileprivate static func ofZones() throws -> PromotionStage {
        let tokyo = try Zone(name: "Asia/Tokyo")
        return try PromotionStage(seed: 3, rules: ChurnPromotion()) { age, names, shadow in
            makeProcessor(names, zone: age == .old ? .utc : tokyo, partitions: StoreRun.partitions, shadow: shadow)
        }
    }

    fileprivate func cells(of name: ShadowName? = nil) throws -> [String: [JSONValue?]] {
        try last(.churnCells, of: name).mapValues(\.sums)
    }
}

@Suite struct `A promotion of other days` {
    private static let check = ShadowName("check")!

    @Test func `gives each cell what the replay counts, once, and a tombstone to what only the old days have`() throws {
        let stage = try Stage.ofZones()
        try stage.run(Stage.replay, .new)
        let (before, wanted) = (try stage.cells(), try stage.cells(of: Stage.replay))
        let (records, events) = (try stage.read(.churnCells), try stage.read(.churnEvents))
        let counts = try stage.promote(Stage.replay)
        #expect(try stage.cells() == wanted)
        let changed = wanted.keys.filter { before[$0] != nil && before[$0] != wanted[$0] }
        let added = wanted.keys.filter { before[$0] == nil }
        let removed = Set(before.keys.filter { wanted[$0] == nil })
        #expect(
            changed.count > 0 && added.count > 0 && removed.count > 0,
            "a judge without cases: \(changed.count) \(added.count) \(removed.count) of \(before.count), \(wanted.count)"
        )
        #expect(counts.changed == changed.count && counts.added == added.count && counts.removed == removed.count)
        #expect(counts.same == wanted.count - changed.count - added.count && counts.same > 3)
        // Nothing else was written, and no event.
        let new = try stage.read(.churnCells).filter { seen in !records.contains(seen) }
        #expect(new.count == changed.count + added.count + removed.count)
        #expect(Set(new.filter { $0.value == nil }.map(\.keyText)) == removed)
        #expect(try stage.read(.churnEvents) == events)
        let ids = try stage.read(.churnCells).map { $0.header("id") }
        #expect(Set(ids).count == ids.count)
    }

    @Test func `is nothing that the worker notices, which goes on by the new days`() throws {
        let stage = try Stage.ofZones()
        try stage.run(Stage.replay, .new)
        try stage.promote(Stage.replay)
        try stage.goOn(.new)
        try stage.run(Self.check, .new)
        #expect(try stage.cells() == stage.cells(of: Self.check))
        #expect(try stage.read(.deadLetters(.churn)).isEmpty)
    }

    @Test func `of the same days changes no cell`() throws {
        let stage = try Stage.ofZones()
        try stage.run(Stage.replay, .old)
        let before = try stage.read(.churnCells)
        let counts = try stage.promote(Stage.replay)
        #expect(counts.same > 20 && counts.changed + counts.added + counts.removed == 0)
        #expect(try stage.read(.churnCells) == before)
        try stage.goOn(.old)
    }

    @Test func `is taken back with what was kept`() throws {
        let stage = try Stage.ofZones()
        let before = try stage.cells()
        try stage.run(Stage.replay, .new)
        try stage.promote(Stage.replay, keeps: Stage.before)
        #expect(try stage.cells() != before)
        try stage.goOn(.new)
        try stage.run(Stage.before, .old)
        try stage.promote(Stage.before)
        try stage.run(Self.check, .old)
        #expect(try stage.cells() == stage.cells(of: Self.check))
        try stage.goOn(.old, tellsRest: false)
        #expect(try stage.cells() == stage.cells(of: Self.check))
    }
}
