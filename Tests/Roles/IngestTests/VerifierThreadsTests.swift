import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Platform
import Synchronization
import TestTraits
import Testing

@testable import Ingest

@Suite(.serialized, .ownThreads) struct `More notifications than can be verified` {
    @Test func `are answered 503 at once beyond what may be held, and the others 200`() async throws {
        let judge = HeldJudge()
        let rig = try IngestRig(
            ["--ingest.plaintext", "true", "--ingest.max.in.flight", "3", "--ingest.timeout.ms", "60000"], judge: judge)
        defer { rig.stop() }
        defer { judge.door.open() }
        try await rig.waitUntilReady()
        let client = try HTTPClient()
        defer { client.close() }
        let accepted = Atomic(0)
        for number in 0..<3 {
            client.send(rig.notification("u-\(number)")) { result in
                if (try? result.get().status) == 200 { accepted.add(1, ordering: .relaxed) }
            }
            // Two may wait; the third is being verified.
            try await waitUntil("one is being verified", within: soon) { judge.taken.load(ordering: .relaxed) > 0 }
        }
        try await waitUntil("three are held", within: soon) {
            rig.metric(#"perennial_http_requests_in_flight{server="ingest"}"#) == 3
        }
        let refused = try client.answer(to: rig.notification("u-3"))
        #expect(refused.status == 503 && refused.text == #"{"error":"unavailable"}"#)
        judge.door.open()
        try await waitUntil("the three are answered", within: soon) { accepted.load(ordering: .relaxed) == 3 }
        #expect(rig.metric(#"perennial_http_refused_total{server="ingest",cause="overloaded"}"#) == 1)
    }

    @Test func `are not verified when their turn comes too late for Kafka`() async throws {
        let judge = HeldJudge()
        // Long enough for the first, whose turn comes at once.
        let threads = VerifierThreads(judge, capacity: 10, patience: .seconds(2), count: 1)
        try threads.start { _ in }
        let busy = Atomic(0)
        let judged = Atomic(0)
        for _ in 0..<3 {
            threads.judge([], isFromApple: false, now: 0, by: Deadline(after: soon), unless: { _ in false }) {
                verdict in
                if case .tooBusy = verdict {
                    busy.add(1, ordering: .relaxed)
                } else {
                    judged.add(1, ordering: .relaxed)
                }
            }
        }
        try await waitUntil("the first is being verified", within: soon) { judge.taken.load(ordering: .relaxed) == 1 }
        try await Task.sleep(for: .milliseconds(2_100))
        judge.door.open()
        try threads.stop(by: Deadline(after: soon))
        #expect(busy.load(ordering: .relaxed) == 2 && judged.load(ordering: .relaxed) == 1)
        #expect(judge.taken.load(ordering: .relaxed) == 1)
    }

    @Test func `come from Apple's network first, and have their room whatever else waits`() async throws {
        let judge = HeldJudge()
        let threads = VerifierThreads(judge, capacity: 2, patience: soon, count: 1)
        try threads.start { _ in }
        let order = Mutex<[String]>([])
        let ask: (String, Bool) -> Void = { name, isFromApple in
            threads.judge(
                Array(name.utf8), isFromApple: isFromApple, now: 0, by: Deadline(after: soon), unless: { _ in false }
            ) { verdict in
                if case .tooBusy = verdict {
                    order.withLock { $0.append("no room for \(name)") }
                } else {
                    order.withLock { $0.append(name) }
                }
            }
        }
        ask("first", false)
        try await waitUntil("the first is being verified", within: soon) { judge.taken.load(ordering: .relaxed) == 1 }
        for name in ["a", "b", "c"] { ask(name, false) }
        ask("Apple", true)
        judge.door.open()
        try threads.stop(by: Deadline(after: soon))
        #expect(order.withLock { $0 } == ["no room for c", "first", "Apple", "a", "b"])
    }

    @Test func `are refused beyond the length of the line and after the stop`() async throws {
        let judge = HeldJudge()
        let threads = VerifierThreads(judge, capacity: 1, patience: soon, count: 1)
        try threads.start { _ in }
        let busy = Atomic(0)
        let ask: () -> Void = {
            threads.judge([], isFromApple: false, now: 0, by: Deadline(after: soon), unless: { _ in false }) {
                verdict in
                if case .tooBusy = verdict { busy.add(1, ordering: .relaxed) }
            }
        }
        ask()
        try await waitUntil("the first is being verified", within: soon) { judge.taken.load(ordering: .relaxed) == 1 }
        ask()
        ask()
        #expect(busy.load(ordering: .relaxed) == 1)
        judge.door.open()
        try threads.stop(by: Deadline(after: soon))
        // Those that waited have a verdict.
        #expect(judge.taken.load(ordering: .relaxed) == 2)
        ask()
        #expect(busy.load(ordering: .relaxed) == 2)
    }
}

/// Gives verdicts only when the test lets it.
private final class HeldJudge: NotificationJudge {
    let door = Latch()
    let taken = Atomic(0)
    private let judge = VerifierPool(Apple.policy, revocation: nil)

    func judge(
        _ body: [UInt8], isFromApple: Bool, now: Int64, by deadline: Deadline,
        unless isKnown: @escaping @Sendable (_ signedPayload: [UInt8]) -> Bool,
        verdict: @escaping @Sendable (Verdict) -> Void
    ) {
        taken.add(1, ordering: .relaxed)
        door.wait(for: soon)
        judge.judge(body, isFromApple: isFromApple, now: now, by: deadline, unless: isKnown, verdict: verdict)
    }
}
