import Contract
import Entitlements
import EntitlementsWorker
import JSON
import Log
import MakeBelieve
import MemoryLog
import NotificationWorker
import Platform
import Runtime
import Simulation
import Store
import Synchronization
import Telemetry
import Testing
import WorkerTestKit

private typealias Stage = PromotionStage

extension PromotionStage {
    /// With the new rules the first product of each app gives one more entitlement.
    fileprivate init() throws {
        try self.init(seed: 3, rules: EntitlementsPromotion(partitions: StoreRun.partitions)) { age, names, shadow in
            let apps = StoreLog.apps.map(\.contractApp).map { app in
                let more = app.entitlements.first?.productIds.first.map {
                    App.Entitlement(name: "new", productIds: [$0])
                }
                return App(
                    bundleId: app.bundleId, appAppleId: app.appAppleId,
                    entitlements: app.entitlements + (age == .new ? [more].compactMap(\.self) : []),
                    periods: app.periods)
            }
            return EntitlementsProcessor(
                names, rules: EntitlementRules(apps: apps, leeway: StoreLog.hour, environment: names.environment),
                partitions: StoreRun.partitions, app: "perennial/test", metrics: EntitlementsMetrics(Metrics()),
                shadow: shadow)
        }
    }

    fileprivate func values(
        _ topic: TopicID = .entitlements, of name: ShadowName? = nil
    ) throws -> [String: [JSONValue]] {
        try Dictionary(
            grouping: read(topic, of: name).filter { $0.value != nil }, by: \.keyText
        ).mapValues { try $0.map { try JSONValue.read($0.value!) } }
    }

    /// The value without the members that depend on its history.
    fileprivate func answers(_ topic: TopicID = .entitlements, of name: ShadowName? = nil) throws -> [String: JSONValue]
    {
        try values(topic, of: name).mapValues { $0.last!.answer }
    }

    /// Sequences of each key grow with every value, and accounts agree with subscriptions.
    fileprivate func expectWhole() throws {
        for (key, values) in try values() {
            let sequences = values.map { $0["sequence"]?.integer ?? -1 }
            #expect(zip(sequences, sequences.dropFirst()).allSatisfy { $0 < $1 }, "\(key): \(sequences)")
        }
        var wanted: [String: JSONValue] = [:]
        for (key, values) in try values() {
            guard let token = values.last!["appAccountToken"]?.string else { continue }
            wanted["\(token)|\(key)"] = values.last!
        }
        let seen = try live.read(names.topic(.accounts))
        let last = Dictionary(seen.map { ($0.keyText, $0.value) }) { $1 }.compactMapValues { $0 }
        #expect(Set(last.keys) == Set(wanted.keys))
        for (key, value) in last {
            let account = try JSONValue.read(value)
            #expect(account.answer == wanted[key]?.answer && account["sequence"] == wanted[key]?["sequence"])
        }
    }
}

extension JSONValue {
    fileprivate var answer: JSONValue {
        guard case .object(let members) = self else { return self }
        return .object(JSONObject(members.members.filter { !["sequence", "asOf", "cause"].contains($0.name) }))
    }
}

@Suite struct `A promotion` {
    @Test func `gives every key that says something else one more value, and no other key any`() throws {
        let stage = try Stage()
        try stage.run(Stage.replay, .new)
        let (before, wanted) = (try stage.values(), try stage.answers(of: Stage.replay))
        let counts = try stage.promote(Stage.replay)
        let after = try stage.values()
        #expect(Set(after.keys) == Set(before.keys))
        var changed = 0
        for (key, values) in after {
            let old = try #require(before[key])
            #expect(values.last!.answer == wanted[key])
            let isSame = old.last!.answer == wanted[key]
            #expect(values.count == old.count + (isSame ? 0 : 1))
            if !isSame {
                changed += 1
                #expect(values.last!["sequence"]!.integer! == old.last!["sequence"]!.integer! + 1)
            }
        }
        #expect(changed > 3 && changed < after.count - 3, "\(changed) of \(after.count)")
        #expect(counts.changed == changed && counts.same == after.count - changed)
        #expect(counts.added == 0 && counts.removed == 0)
        try stage.expectWhole()
        let ids = try stage.live.read(stage.names.topic(.entitlements)).map { $0.header("id") }
        #expect(Set(ids).count == ids.count)
    }

    @Test func `is nothing that the worker notices, which goes on by the new rules`() throws {
        let stage = try Stage()
        try stage.run(Stage.replay, .new)
        try stage.promote(Stage.replay)
        try stage.goOn(.new)
        try stage.expectWhole()
        try stage.run(ShadowName("check")!, .new)
        #expect(try stage.answers() == stage.answers(of: ShadowName("check")!))
        #expect(try stage.live.read(stage.names.topic(.deadLetters(.entitlements))).isEmpty)
    }

    @Test func `of the same rules changes nothing that readers see`() throws {
        let stage = try Stage()
        try stage.run(Stage.replay, .old)
        let before = try stage.live.read(stage.names.topic(.entitlements))
        let counts = try stage.promote(Stage.replay)
        #expect(counts.changed == 0 && counts.same > 20)
        #expect(try stage.live.read(stage.names.topic(.entitlements)) == before)
        try stage.goOn(.old)
        try stage.expectWhole()
    }

    @Test func `writes in the form of this build what a build before 0.2 has left`() throws {
        let stage = try Stage()
        try stage.run(Stage.replay, .old)
        let topic = stage.names.topic(.entitlements)
        let some = try #require(stage.live.read(topic).first)
        let left = OutputBatch()
        left.append(
            topic: 0, partition: 0, timestamp: 5, key: Array("left".utf8), value: some.value,
            headers: [
                RecordHeader("id", "0-1-0"), RecordHeader("type", "entitlement"),
                RecordHeader("schema", "entitlement/1"), RecordHeader("app", "perennial/0.1.0"),
                RecordHeader("rules", "abc"), RecordHeader("source", "t:0:1"),
            ])
        let deadline = Deadline(after: .seconds(1))
        _ = try stage.live.log.openWriter(WriterOptions(name: "0.1.0", topics: [topic])).append(left, by: deadline)
        let counts = try stage.promote(Stage.replay)
        #expect(counts.removed == 1)
        let tombstone = try #require(stage.live.read(topic).last { $0.keyText == "left" })
        #expect(tombstone.value == nil && tombstone.header("id") != "0-1-0")
        #expect(tombstone.headers.map(\.name) == ["id", "schema", "app", "source"])
        #expect(tombstone.header("schema") == "entitlement/1" && tombstone.header("app") == "perennial/0.1.0+abc")
    }

    @Test(arguments: 0..<7)
    func `that ends at one of its steps ends right the next time`(step: Int) throws {
        let whole = try Stage()
        try whole.run(Stage.replay, .new)
        try whole.promote(Stage.replay, keeps: Stage.before)

        let stage = try Stage()
        try stage.run(Stage.replay, .new)
        var count = 0
        let broken = try stage.promotion(Stage.replay, keeps: Stage.before) { _ throws(PromotionFault) in
            defer { count += 1 }
            if count == step { throw .store("killed") }
        }
        #expect(throws: PromotionFault.store("killed")) { try broken.run(by: Deadline(after: .seconds(10))) }
        // After the mark no worker uses the state.
        if step > 1 {
            stage.live.processor = try stage.processor(.old)
            stage.live.start(stage.live.processes[0])
            for _ in 0..<100 { stage.live.step(stage.live.processes[0]) }
            let troubles = stage.live.processes[0].troubles
            let advice = "perennial promote entitlements --name better --apply"
            #expect(troubles.contains { $0.contains(advice) }, "\(troubles)")
            stage.live.stop(stage.live.processes[0])
        }
        try stage.promote(Stage.replay, keeps: Stage.before)
        #expect(try stage.values() == whole.values())
        try stage.expectWhole()
        try stage.goOn(.new)
        try whole.goOn(.new)
        #expect(try stage.answers() == whole.answers())
        try stage.expectWhole()
    }

    @Test(arguments: [LogStep.append, .beforeCommit, .commit, .afterCommit], 0..<9)
    func `that dies inside the log ends right the next time`(at step: LogStep, after count: Int) throws {
        let stage = try Stage()
        try stage.run(Stage.replay, .new)
        stage.killer.kill(at: step, after: count)
        var hasDied = false
        do { try stage.promote(Stage.replay, keeps: Stage.before) } catch { hasDied = true }
        try stage.promote(Stage.replay, keeps: Stage.before)
        #expect(hasDied || count > 5)
        #expect(try stage.answers() == stage.answers(of: Stage.replay))
        try stage.expectWhole()
        try stage.goOn(.new)
        try stage.expectWhole()
    }

    @Test func `is taken back with what was kept`() throws {
        let stage = try Stage()
        let before = try stage.answers()
        try stage.run(Stage.replay, .new)
        try stage.promote(Stage.replay, keeps: Stage.before)
        #expect(try stage.answers() != before)
        try stage.goOn(.new)
        // With the old rules the replay continues to the offsets of the live worker.
        try stage.run(Stage.before, .old)
        try stage.promote(Stage.before)
        try stage.run(ShadowName("check")!, .old)
        #expect(try stage.answers() == stage.answers(of: ShadowName("check")!))
        try stage.goOn(.old, tellsRest: false)
        try stage.expectWhole()
    }

    @Test func `wipes what a disk has of the state before`() throws {
        let stage = try Stage()
        let old = stage.live.processes[0].disk.copy()
        try stage.run(Stage.replay, .new)
        try stage.promote(Stage.replay)
        stage.live.processes[0].disk = old
        try stage.goOn(.new)
        try stage.run(ShadowName("check")!, .new)
        #expect(try stage.answers() == stage.answers(of: ShadowName("check")!))
        try stage.expectWhole()
    }

    @Test func `is refused while the worker runs, and when the replay is elsewhere`() throws {
        let stage = try Stage()
        try stage.run(Stage.replay, .new)
        try stage.goOn(.old)
        let behind = #expect(throws: PromotionFault.self) { try stage.promote(Stage.replay) }
        #expect(behind?.description.contains("partition 0: the live worker is at") == true)
        try stage.run(Stage.replay, .new)
        stage.live.start(stage.live.processes[0])
        for _ in 0..<50 { stage.live.step(stage.live.processes[0]) }
        let before = try stage.live.read(stage.names.topic(.entitlements))
        let busy = #expect(throws: PromotionFault.self) { try stage.promote(Stage.replay) }
        #expect(busy?.description.contains("has members") == true)
        #expect(try stage.live.read(stage.names.topic(.entitlements)) == before)
    }

    @Test func `keeps the greatest sequence, and a state that none could follow`() {
        let rules = EntitlementsPromotion(partitions: 1)
        let key = Array("1".utf8)
        func value(_ answer: String) -> [UInt8] {
            Array(#"{"a":"\#(answer)","sequence":\#(Int64.max),"asOf":0,"cause":null}"#.utf8)
        }
        let records = rules.replacement(of: key, live: value("old"), shadow: value("new"))
        #expect(records.map(\.value) == [value("new")])
        let state = [2, 0] + Facts().bytes
        #expect(rules.state(state, format: 1, of: key, after: value("new")) == state)
        let later = Array(#"{"a":"","sequence":5,"asOf":0,"cause":null}"#.utf8)
        #expect(rules.state(state, format: 1, of: key, after: later) == [10, 0] + Facts().bytes)
    }
}
