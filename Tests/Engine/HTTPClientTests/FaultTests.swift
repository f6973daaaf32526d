import Glibc
import HTTP
import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Platform
import Synchronization
import TestTraits
import Testing

@Suite(.ownThreads) struct `An HTTP client that gets no answer` {
    private func withHolder(
        _ body: (Holder, TestServer) async throws -> Void
    ) async throws {
        let holder = Holder()
        let server = try TestServer(holder)
        defer { server.stop() }
        try await body(holder, server)
        holder.answerAll()
    }

    @Test func `says that nobody listens`() throws {
        let url = "http://127.0.0.1:\(try SilentPort.closed())/"
        let client = try HTTPClient()
        defer { client.close() }
        #expect(client.fault(.init("GET", url)) == .notConnected)
    }

    @Test func `says that a name is not known`() throws {
        let client = try HTTPClient()
        defer { client.close() }
        // RFC 6761: no name ends in ".invalid".
        #expect(client.fault(.init("GET", "http://nobody.invalid/")) == .nameNotFound)
    }

    @Test func `gives up when the time is over`() async throws {
        try await withHolder { _, server in
            let client = try HTTPClient.make { $0.timeout = .milliseconds(200) }
            defer { client.close() }
            let start = ContinuousClock.now
            #expect(client.fault(.init("GET", server.url("/"))) == .timedOut)
            let took = ContinuousClock.now - start
            #expect(took >= .milliseconds(200) && took < patience / 2)
        }
    }

    @Test func `gives up when a server does not begin to speak TLS`() throws {
        let silent = try SilentPort()
        let client = try HTTPClient.make { $0.connectTimeout = .milliseconds(200) }
        defer { client.close() }
        #expect(client.fault(.init("GET", "https://127.0.0.1:\(silent.port)/")) == .timedOut)
    }

    /// A request that shares a connection waits for it, and the library does not count that time.
    @Test func `ends every request of many that wait for a connection which never comes`() async throws {
        let silent = try SilentPort()
        let client = try HTTPClient.make {
            $0.connectTimeout = .milliseconds(300)
            $0.timeout = .seconds(1)
        }
        defer { client.close() }
        let ended = Mutex(0)
        for _ in 0..<32 {
            client.send(.init("PUT", "https://127.0.0.1:\(silent.port)/", body: [1])) { _ in ended.withLock { $0 += 1 }
            }
        }
        try await waitUntil("all have ended", within: patience) { ended.withLock { $0 } == 32 }
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", HTTPClientFault.Kind.broken), ("", .broken),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", .broken), ("nonsense\r\n\r\n", .badAnswer),
    ])
    func `tells an answer that breaks off from one that is none`(
        _ answer: String, _ kind: HTTPClientFault.Kind
    ) async throws {
        let raw = try SilentPort()
        let client = try HTTPClient()
        defer { client.close() }
        let outcomes = Outcomes()
        client.send(.init("GET", "http://127.0.0.1:\(raw.port)/"), completion: outcomes.take)
        try await raw.answerOnce(answer)
        try await waitUntil("the request ends") { outcomes.count == 1 }
        #expect(outcomes.faults == [kind], "\(outcomes.all)")
    }

    @Test func `takes no more of an answer than it may`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try HTTPClient.make { $0.maxResponseBytes = 1000 }
        defer { client.close() }
        let (fits, over) = ([UInt8](repeating: 1, count: 1000), [UInt8](repeating: 1, count: 1001))
        #expect(try client.answer(to: .init("POST", server.url("/"), body: fits)).body == fits)
        #expect(client.fault(.init("POST", server.url("/"), body: over)) == .tooLarge)
        #expect(try client.answer(to: .init("POST", server.url("/"), body: fits)).body == fits)
    }

    @Test func `takes no endless head`() async throws {
        let raw = try SilentPort()
        let client = try HTTPClient()
        defer { client.close() }
        let outcomes = Outcomes()
        client.send(.init("GET", "http://127.0.0.1:\(raw.port)/"), completion: outcomes.take)
        let line = "X-Filler: " + String(repeating: "x", count: 1000) + "\r\n"
        try await raw.answerOnce("HTTP/1.1 200 OK\r\n" + String(repeating: line, count: 70))
        try await waitUntil("the request ends") { outcomes.count == 1 }
        #expect(outcomes.faults == [.tooLarge])
    }

    @Test func `refuses what it has no room for, and answers the rest`() async throws {
        try await withHolder { holder, server in
            let client = try HTTPClient.make {
                $0.maxInFlight = 2
                $0.maxWaiting = 3
            }
            defer { client.close() }
            let outcomes = Outcomes()
            for _ in 0..<2 { client.send(.init("GET", server.url("/")), completion: outcomes.take) }
            try await waitUntil("two are on their way") { holder.count == 2 }
            for _ in 0..<10 { client.send(.init("GET", server.url("/")), completion: outcomes.take) }
            #expect(outcomes.faults == Array(repeating: .overloaded, count: 5))
            try await waitUntil("the others are answered") {
                holder.answerAll()
                return outcomes.statuses.count == 7
            }
        }
    }

    @Test func `ends a request that is cancelled, on its way or waiting, and no other`() async throws {
        try await withHolder { holder, server in
            let client = try HTTPClient.make { $0.maxInFlight = 2 }
            defer { client.close() }
            let (wanted, unwanted) = (Outcomes(), Outcomes())
            client.send(.init("GET", server.url("/")), completion: wanted.take)
            let running = client.send(.init("GET", server.url("/")), completion: unwanted.take)
            try await waitUntil("two are on their way") { holder.count == 2 }
            client.send(.init("GET", server.url("/")), completion: wanted.take)
            let waiting = client.send(.init("GET", server.url("/")), completion: unwanted.take)
            client.cancel(waiting)
            client.cancel(running)
            try await waitUntil("both have ended") { unwanted.faults == [.cancelled, .cancelled] }
            try await waitUntil("the others are answered") {
                holder.answerAll()
                return wanted.statuses == [200, 200]
            }
            client.cancel(running)
            #expect(unwanted.count == 2)
        }
    }

    @Test func `ends every request when it is closed, and takes none afterwards`() async throws {
        try await withHolder { holder, server in
            let client = try HTTPClient.make { $0.maxInFlight = 2 }
            let outcomes = Outcomes()
            for _ in 0..<5 { client.send(.init("GET", server.url("/")), completion: outcomes.take) }
            try await waitUntil("two are on their way") { holder.count == 2 }
            #expect(client.close())
            #expect(outcomes.faults == Array(repeating: .cancelled, count: 5))
            #expect(client.fault(.init("GET", server.url("/"))) == .cancelled)
            #expect(client.close())
        }
    }

    @Test func `closes itself when nobody holds it`() async throws {
        try await withHolder { holder, server in
            let outcomes = Outcomes()
            do {
                let client = try HTTPClient()
                client.send(.init("GET", server.url("/")), completion: outcomes.take)
                try await waitUntil("it is on its way") { holder.count == 1 }
            }
            try await waitUntil("it has ended") { outcomes.faults == [.cancelled] }
        }
    }
}

@Suite struct `The proxy of the environment` {
    /// Runs in a process of its own, because other tests read the environment while this one changes it.
    @Test func `is used only where it is asked for`() async {
        await #expect(processExitsWith: .success) {
            // Nothing listens there: a client that uses it fails, a client that does not gets its answer.
            setenv("http_proxy", "http://127.0.0.1:1", 1)
            unsetenv("no_proxy")
            unsetenv("NO_PROXY")
            let server = try TestServer()
            defer { server.stop() }
            try await blocking {
                let direct = try HTTPClient()
                defer { direct.close() }
                #expect(direct.fault(.init("GET", server.url("/"))) == nil)
                let indirect = try HTTPClient.make { $0.usesProxyOfEnvironment = true }
                defer { indirect.close() }
                #expect(indirect.fault(.init("GET", server.url("/"))) == .notConnected)
            }
        }
    }
}
