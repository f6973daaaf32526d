import Consumption
import Contract
import JSON
import MakeBelieve
import Notices
import Simulation
import Testing
import WorkerTestKit

private func store(_ seed: UInt64, _ subscribers: Int) throws -> StoreLog {
    try StoreLog(
        seed: seed, subscribers: subscribers, arrival: 3 * StoreLog.day, after: 60 * StoreLog.day, refundsPerMille: 1000
    )
}

private func rules(_ policy: RefundPolicy?) -> ConsumptionRules {
    ConsumptionRules(
        apps: StoreLog.apps.map { App(bundleId: $0.bundleId, appAppleId: 1, entitlements: [], periods: []) },
        policy: policy, wait: waitForUsage)
}

private func policy() throws -> RefundPolicy {
    try RefundPolicy.read(
        Array(
            #"""
            {"version":"1","rules":[
            {"name":"law","when":{"reason":"LEGAL"},"answer":{"withhold":true}},
            {"name":"used","when":{"consumptionPercentage":{"from":50000}},"answer":{"refundPreference":"DECLINE"}},
            {"name":"first","when":{"refundsRequested":1},"answer":{"refundPreference":"GRANT_PRORATED"}}],
            "shadow":{"version":"2","rules":[]}}
            """#.utf8))
}

@Suite struct `The consumption worker held to the truth` {
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `answers every request that must be answered, none that must not, and tells how each ended`(seed: UInt64)
        throws
    {
        let store = try store(seed, 40)
        let run = try RefundRun(end: store.end)
        try run.playWithSender(try store.refundInputs(tickEvery: 6 * StoreLog.hour))
        var told: [String: [JSONValue]] = [:]
        for text in try run.told().values.joined() {
            let value = try JSONValue.read(Array(text.utf8))
            told[value["id"]?.string ?? "", default: []].append(value)
        }
        let truths = (0..<store.simulation.configuration.subscribers).flatMap {
            store.simulation.refundRequests(of: $0)
        }
        var answers: [RefundTruth.Answer: Int] = [:]
        for truth in truths where truth.transaction.environment == store.environment {
            let steps = told[truth.notificationUUID] ?? []
            let kinds = steps.map(\.word)
            answers[truth.answer, default: 0] += 1
            #expect(kinds.first == "requested")
            switch truth.answer {
            case .must: #expect(kinds.contains("decided") && kinds.contains("sent"), "\(kinds) \(truth)")
            case .never: #expect(!kinds.contains("decided") && !kinds.contains("sent"), "\(kinds) \(truth)")
            case .may: break
            }
            let last = kinds.last { $0.hasPrefix("outcome ") }
            #expect(last == truth.outcome.map { "outcome \($0)" }, "\(kinds) \(truth)")
            #expect(steps[0]["requestReason"]?.string != nil)
        }
        for answer in [RefundTruth.Answer.must, .may, .never] {
            #expect(answers[answer, default: 0] > 0, "\(answers)")
        }
        #expect(try run.letters() == [])
    }

    @Test(arguments: [11, 12, 13, 14] as [UInt64])
    func `writes what a plain fold of the same records tells, whatever fails`(seed: UInt64) throws {
        let store = try store(seed, 30)
        let policy = try policy()
        let inputs = try withAttempts(try store.refundInputs(tickEvery: 6 * StoreLog.hour), rules(policy), seed)
        let expected = try plainFold(inputs, rules(policy))
        #expect(expected.values.joined().count > 60)
        let calm = try RefundRun(policy: policy, end: store.end)
        try playInOrder(calm, inputs)
        #expect(try calm.told() == expected)
        let run = try RefundRun(processes: 3, faults: seed, policy: policy, end: store.end)
        try run.struggle(inputs)
        try judge(try run.told(), expected)
        #expect(try run.letters() == [])
        for misfortune in ["kill", "stop"] { #expect(run.happened.contains(misfortune)) }
    }

    /// Rows that were written before the first notification are read before it by every process, in every run.
    @Test(arguments: [31, 32, 33] as [UInt64])
    func `writes byte for byte what a plain fold tells, whatever fails, when the tables were there first`(seed: UInt64)
        throws
    {
        let store = try store(seed, 40)
        let policy = try policy()
        let inputs = try withAttempts(try store.refundInputs(tickEvery: 6 * StoreLog.hour), rules(policy), seed)
        let rows = inputs.filter { ($0.topic ?? 0) > 0 }
        let rest = inputs.filter { ($0.topic ?? 0) == 0 }
        let usage = rows.filter { $0.topic == 1 }
        let attempts = rows.filter { $0.topic == 2 }
        let expected = try plainFold(usage + attempts + rest, rules(policy))
        let run = try RefundRun(processes: 3, faults: seed, policy: policy, end: store.end)
        for part in [usage, attempts] { try run.playQuietly(part) }
        try run.struggle(rest)
        #expect(try run.told() == expected)
        #expect(expected.values.joined().contains { $0.contains(#""kind":"sent""#) })
        for misfortune in ["kill", "stop"] { #expect(run.happened.contains(misfortune)) }
    }

    /// Rows of usage and of attempts that were written meanwhile may be read before or after a notification: the records of a
    /// request may differ by that, but its rules hold.
    private func judge(_ told: [String: [String]], _ expected: [String: [String]]) throws {
        #expect(Set(told.keys) == Set(expected.keys))
        for (key, texts) in told {
            let values = try texts.map { try JSONValue.read(Array($0.utf8)) }
            let plain = try (expected[key] ?? []).map { try JSONValue.read(Array($0.utf8)) }
            func ids(_ values: [JSONValue], _ kind: String) -> [String] {
                values.filter { $0["kind"]?.string == kind }
                    .map { "\($0["id"]?.string ?? "") \($0["detail"]?.string ?? "")" }.sorted()
            }
            #expect(ids(values, "requested") == ids(plain, "requested"))
            #expect(ids(values, "outcome") == ids(plain, "outcome"))
            for id in Set(values.compactMap { $0["id"]?.string }) {
                let own = values.filter { $0["id"]?.string == id }
                let bodies = own.filter { $0["kind"]?.string == "decided" }.map { "\($0["body"] ?? .null)" }
                #expect(Set(bodies).count <= 1, "\(own.map(\.word))")
                let end =
                    own.firstIndex { ["sent", "failed", "expired"].contains($0["kind"]?.string) } ?? own.count - 1
                #expect(own[(end + 1)...].allSatisfy { $0["kind"]?.string == "outcome" }, "\(own.map(\.word))")
                #expect(own.count { $0["kind"]?.string == "requested" } == 1)
            }
        }
    }

    /// Processes every input before the next: then the order across topics is that of the list.
    private func playInOrder(_ run: RefundRun, _ inputs: [RefundRun.Input]) throws {
        for input in inputs { try run.play([input]) }
    }

    /// With rows of attempts of a sender that gets various answers from Apple.
    private func withAttempts(_ inputs: [RefundRun.Input], _ rules: ConsumptionRules, _ seed: UInt64) throws
        -> [RefundRun.Input]
    {
        var chance = Chance(seed: seed)
        var rows: [RefundRun.Input] = []
        for (key, texts) in try plainFold(inputs, rules).sorted(by: { $0.key < $1.key }) {
            for text in texts {
                let value = try JSONValue.read(Array(text.utf8))
                guard value["kind"]?.string == "decided", let id = value["id"]?.string, var at = value["at"]?.integer
                else { continue }
                for number in 1...chance.below(4) + 1 {
                    let status: Int64? = chance.of(nil, 202, 400, 429, 500, 401)
                    at += chance.below(3 * hour)
                    let row = Attempt(
                        id: .init(id), number: number, at: at, httpStatus: status, errorCode: nil, retryAt: nil)
                    rows.append(RefundRun.Input(at: at, topic: 2, key: Array(key.utf8), value: row.value))
                }
            }
        }
        return (inputs + rows).enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
            .map(\.element)
    }

    @Test func `writes the same bytes however the work is cut into cycles`() throws {
        let store = try store(21, 25)
        let inputs = try store.refundInputs(tickEvery: 6 * StoreLog.hour)
        var outputs: [[WorkerSimulation.Seen]] = []
        for (interval, cache) in [(20, 4_096), (0, 300), (1_000, 1 << 20)] {
            let run = try RefundRun(policy: try policy(), end: store.end)
            run.simulation.commitInterval = .milliseconds(interval)
            run.simulation.cacheBytes = cache
            // Tables are then read before the notifications.
            for input in inputs where input.topic == 1 { try run.feed(input) }
            try run.play([])
            for input in inputs where input.topic != 1 { try run.feed(input) }
            try run.play([])
            outputs.append(try run.simulation.read(RefundRun.names.topic(.consumption)))
        }
        #expect(outputs[0].count > 50)
        #expect(outputs.allSatisfy { $0 == outputs[0] })
    }
}
