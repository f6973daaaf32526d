import HTTP
import KafkaTestKit
import Platform
import Synchronization
import TestTraits
import Testing

@testable import Crypto
@testable import Revocation

@Suite(.ownThreads) struct `A watch of revocations` {
    @Test func `knows nothing at first, and asks about leaf and intermediate beside`() throws {
        let chain = try Chain()
        let responder = try TestResponder(chain)
        defer { responder.stop() }
        let run = try WatchRun(responder)
        defer { run.stop() }
        #expect(run.watch.status(of: chain.trusted) == .unknown)
        #expect(run.wait(for: chain) == .good)
        #expect(run.watch.status(of: chain.trusted) == .good)
        #expect(run.addressesAsked.sorted() == [Chain.address + "leaf", Chain.address + "root"])
        let question = OCSPQuestion(about: chain.leaf.certificate, issuedBy: chain.intermediate.certificate)
        let request = try #require(responder.requests.first { $0.path == "/ocsp03-leaf" })
        #expect(request.method == "POST")
        #expect(request.headers.all("Content-Type") == ["application/ocsp-request"])
        #expect(request.body == question.request)
        #expect(run.value(#"perennial_ocsp_answers_total{status="good"}"#) == 2)
    }

    @Test(arguments: [true, false]) func `knows a revoked leaf and a revoked intermediate`(_ isLeaf: Bool) throws {
        let chain = try Chain()
        let responder = try TestResponder(
            chain, leaf: .says(isLeaf ? .revoked : .good), intermediate: .says(isLeaf ? .good : .revoked))
        defer { responder.stop() }
        let run = try WatchRun(responder)
        defer { run.stop() }
        #expect(run.wait(for: chain) == .revoked)
        #expect(run.watch.status(of: chain.trusted) == .revoked)
        #expect(run.value(#"perennial_ocsp_answers_total{status="revoked"}"#) == 1)
        let lines = run.logLines.filter { $0.contains("ERROR") }
        #expect(lines.count == 1 && lines[0].contains(chain.leaf.certificate.serial), "\(lines)")
    }

    @Test func `takes one revoked certificate for enough when nothing is known of the other`() throws {
        let chain = try Chain()
        let responder = try TestResponder(chain, leaf: .says(.revoked), intermediate: .status(500))
        defer { responder.stop() }
        let run = try WatchRun(responder)
        defer { run.stop() }
        #expect(run.wait(for: chain) == .revoked)
    }

    @Test func `knows nothing while nobody answers, and says so once`() throws {
        let chain = try Chain()
        let run = try WatchRun(nil)
        defer { run.stop() }
        // Long enough for a retry after a second.
        #expect(run.wait(for: chain, .milliseconds(1500)) == .unknown)
        #expect(run.failures("http_not_connected") >= 4)
        let lines = run.logLines
        #expect(lines.count == 1 && lines[0].contains("WARNING") && lines[0].contains("http_not_connected"), "\(lines)")
    }

    @Test func `asks again after a failure and tells those who wait`() async throws {
        let chain = try Chain()
        let responder = try TestResponder(chain, leaf: .status(503))
        defer { responder.stop() }
        let run = try WatchRun(responder)
        defer { run.stop() }
        _ = run.watch.status(of: chain.trusted)
        try await waitUntil("the first failure") { run.failures("http_status") >= 1 }
        responder.say(leaf: .says(.good))
        #expect(run.wait(for: chain) == .good)
        #expect(run.logLines.last?.contains("known again") == true, "\(run.logLines)")
    }

    @Test(
        arguments: [
            (TestResponder.Reply.says(.unknown), "status_unknown"), (.status(404), "http_status"),
            (.status(302), "http_status"), (.bytes([]), "answer_unreadable"),
            (.bytes(Array("<html>sign in to this network</html>".utf8)), "answer_unreadable"),
            (.bytes([UInt8](repeating: 0x30, count: 60 << 10)), "answer_unreadable"),
            (.bytes([UInt8](repeating: 0x30, count: 1 << 20)), "http_too_large"),
        ] as [(TestResponder.Reply, String)])
    func `takes for no answer what is none`(_ reply: TestResponder.Reply, _ cause: String) async throws {
        let chain = try Chain()
        let responder = try TestResponder(chain, leaf: reply)
        defer { responder.stop() }
        let run = try WatchRun(responder)
        defer { run.stop() }
        _ = run.watch.status(of: chain.trusted)
        try await waitUntil("the failure") { run.failures(cause) >= 1 }
        #expect(run.watch.status(of: chain.trusted) == .unknown)
    }

    @Test(
        arguments: [
            nil, "http://169.254.169.254/latest/meta-data", "https://ocsp.apple.com/ocsp03-leaf",
            "http://ocsp.apple.com:8080/ocsp03-leaf", "http://ocsp.apple.com@127.0.0.1/ocsp03-leaf",
            "http://ocsp.apple.com.example/ocsp03-leaf", "http://OCSP.apple.com/ocsp03-leaf", "http://ocsp.apple.com",
            "http://ocsp.apple.com/../ocsp03-leaf", "http://ocsp.apple.com/ocsp03-leaf?to=http://127.0.0.1/",
            "http://ocsp.apple.com/ocsp03 leaf", "http://ocsp.apple.com/%0d%0aHost:x", "ldap://ocsp.apple.com/leaf",
            "http://ocsp.apple.com/" + String(repeating: "a", count: 300),
        ]) func `asks nobody but ocsp.apple.com over HTTP`(_ address: String?) async throws
    {
        let chain = try Chain(leafAddress: address)
        let responder = try TestResponder(chain)
        defer { responder.stop() }
        let run = try WatchRun(responder)
        defer { run.stop() }
        _ = run.watch.status(of: chain.trusted)
        // The intermediate's address is Apple's. Once it has been asked, the leaf's would have been asked, too.
        try await waitUntil("the answer about the intermediate") {
            run.value(#"perennial_ocsp_answers_total{status="good"}"#) >= 1
        }
        // Once, or twice on a slow machine.
        #expect(run.failures("no_address") >= 1)
        #expect(Set(run.addressesAsked) == [Chain.address + "root"])
        #expect(run.watch.status(of: chain.trusted) == .unknown)
    }

    @Test func `asks once for all who wait at the same time`() async throws {
        let chain = try Chain()
        let responder = try TestResponder(chain)
        defer { responder.stop() }
        let run = try WatchRun(responder)
        defer { run.stop() }
        let answers = Mutex<[RevocationStatus]>([])
        for _ in 0..<100 {
            run.watch.whenKnown([chain.trusted, chain.trusted], by: Deadline(after: patience)) { status in
                answers.withLock { $0.append(status) }
            }
        }
        try await waitUntil("all answers") { answers.withLock { $0.count } == 100 }
        #expect(answers.withLock { $0.allSatisfy { $0 == .good } })
        #expect(responder.requests.count == 2)
    }

    @Test func `lets nobody wait beyond its limit`() throws {
        let chain = try Chain()
        let run = try WatchRun(nil, maxWaiters: 1)
        defer { run.stop() }
        run.watch.whenKnown([chain.trusted], by: Deadline(after: .seconds(3600))) { _ in }
        let answer = Mutex<RevocationStatus?>(nil)
        run.watch.whenKnown([chain.trusted], by: Deadline(after: .seconds(3600))) { status in
            answer.withLock { $0 = status }
        }
        #expect(answer.withLock { $0 } == .unknown)
    }

    @Test func `tells those who wait that nothing is known when it is closed`() throws {
        let chain = try Chain()
        let run = try WatchRun(nil)
        defer { run.stop() }
        let answer = Mutex<RevocationStatus?>(nil)
        run.watch.whenKnown([chain.trusted], by: Deadline(after: .seconds(3600))) { status in
            answer.withLock { $0 = status }
        }
        #expect(run.watch.close())
        #expect(answer.withLock { $0 } == .unknown)
        #expect(run.wait(for: chain) == .unknown)
    }
}
