import Contract
import JSON
import MakeBelieve
import Simulation
import Testing
import TruthCheck

/// One store, and how its notifications are disturbed.
struct Trial: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let seed: UInt64
    let subscribers: Int
    /// Days in which subscribers join, and days after them.
    let arrival: Int64
    let after: Int64
    var isSandbox = false

    func store() throws -> StoreLog {
        try StoreLog(
            seed: seed, subscribers: subscribers, arrival: arrival * StoreLog.day, after: after * StoreLog.day,
            sandbox: isSandbox)
    }

    static let all = [
        Trial(testDescription: "lives that are over", seed: 1, subscribers: 90, arrival: 30, after: 1_060),
        Trial(testDescription: "lives in their midst", seed: 2, subscribers: 100, arrival: 300, after: 1),
        Trial(testDescription: "sandbox, over", seed: 3, subscribers: 60, arrival: 1, after: 31, isSandbox: true),
        Trial(
            testDescription: "sandbox, in the midst", seed: 5, subscribers: 60, arrival: 1, after: 0, isSandbox: true),
    ]
}

@Suite struct `The worker held to the truth` {
    @Test(arguments: Trial.all)
    func `ends where every story ended, whatever failed, came late or came again`(_ trial: Trial) throws {
        let store = try trial.store()
        var delivery = Delivery.Configuration(seed: trial.seed)
        delivery.duplicatesPerMille = 150
        delivery.delaysPerMille = 250
        delivery.swapsPerMille = 150
        // As late as Apple's last retry: half of the notifications of a subscription are out of order.
        delivery.longestDelay = 157 * StoreLog.hour
        let run = try StoreRun(store, processes: 3, faults: trial.seed)
        try run.struggle(store.disturbed(by: delivery))
        let wrong = try run.judge()
        #expect(wrong.isEmpty, "\(wrong.count): \(wrong.prefix(8).joined(separator: "\n"))")
        for misfortune in ["kill", "freeze", "stop", "lost disk"] {
            #expect(run.happened.contains(misfortune), "there was no \(misfortune) that could have done harm")
        }
    }

    @Test(arguments: Trial.all.filter { !$0.isSandbox })
    func `gives access at every moment to whom the truth gives it, and to nobody else`(_ trial: Trial) throws {
        let store = try trial.store()
        let run = try StoreRun(store)
        try run.play(store.punctual)
        let truth = try TruthCheck(lines: store.truth, leeway: store.leeway)
        let wrong = truth.wrongMoments(of: try run.values(.entitlements)) + (try run.judge())
        #expect(wrong.isEmpty, "\(wrong.count): \(wrong.prefix(8).joined(separator: "\n"))")
    }

    @Test(arguments: Trial.all)
    func `tells of every deed what it is and when it was, and of nothing that nobody did`(_ trial: Trial) throws {
        let store = try trial.store()
        let run = try StoreRun(store)
        // In sandbox, time alone changes states within minutes.
        try run.play(store.punctual, tickEvery: trial.isSandbox ? StoreLog.minute / 2 : 12 * StoreLog.hour)
        let truth = try TruthCheck(lines: store.truth, leeway: store.leeway)
        let events = try run.values(.entitlementEvents)
        let wrong = truth.wrongEvents(events)
        #expect(wrong.isEmpty, "\(wrong.count): \(wrong.prefix(12).joined(separator: "\n"))")
        // Without any cases the judge would find nothing wrong.
        #expect(truth.wrongEvents([:]).count > events.values.reduce(0) { $0 + $1.count } * 9 / 10)
    }
}
