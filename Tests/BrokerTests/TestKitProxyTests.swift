import Glibc
import KafkaTestKit
import Platform
import Testing

/// Reads what the other side sends until it closes.
private func readToEnd(_ connection: borrowing Descriptor) throws -> [UInt8] {
    var all: [UInt8] = []
    var bytes = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = recv(connection.number, &bytes, bytes.count, 0)
        // A reset is an end, too: the other side has not read our bytes.
        if count < 0 && errno != ECONNRESET { throw SystemFailure.last("wait for the end") }
        if count <= 0 { return all }
        all += bytes.prefix(count)
    }
}

extension `The test kit` {
    /// A broker and a proxy in front of it; both are stopped afterwards.
    @Suite struct `with a frame proxy` {
        private func withProxy(_ body: (FrameProxy, FakeBroker) async throws -> Void) async throws {
            try await FakeBroker.serving { broker in
                let proxy = try FrameProxy(brokerPorts: [broker.port])
                try await body(proxy, broker)
                await proxy.close()
            }
        }

        /// Sends one request on a connection of its own; the answer is its number in the order of arrival at the broker.
        @discardableResult
        private func ask(_ proxy: FrameProxy, _ api: KafkaAPI, _ text: String = "") async throws -> Int16 {
            let port = proxy.ports[0]
            return try await onOwnThread("client") {
                // The broker of the test answers at once, but a busy machine may stand still for seconds.
                var connection = try WireConnection(port: port, limit: .seconds(30))
                var reader = WireReader(try connection.exchange(api, version: 0, body: Array(text.utf8)))
                return try reader.number(Int16.self)
            }
        }

        @Test func `passes requests and answers, and counts them`() async throws {
            try await withProxy { proxy, broker in
                var places: [Int16] = []
                for api in [.metadata, .endTxn, .metadata] as [KafkaAPI] { places.append(try await ask(proxy, api)) }
                #expect(places == [1, 2, 3])
                #expect(proxy.count(of: .metadata) == 2)
                #expect(proxy.count(of: .endTxn) == 1)
                #expect(proxy.count(of: .fetch) == 0)
                #expect(broker.requests[1].clientID == "kafka-test-kit")
            }
        }

        @Test func `passes a frame larger than every buffer`() async throws {
            try await withProxy { proxy, broker in
                try await ask(proxy, .produce, String(repeating: "x", count: 20 << 20))
                #expect(broker.requests[0].bytes.count > 20 << 20)
            }
        }

        @Test func `lets a held request arrive after the one that repeated it`() async throws {
            try await withProxy { proxy, broker in
                let hold = proxy.hold(.endTxn)
                let port = proxy.ports[0]
                // The client gives up and closes its connection without an answer.
                try await onOwnThread("client") {
                    var connection = try WireConnection(port: port)
                    try connection.send(.endTxn, version: 0, body: Array("first".utf8))
                }
                #expect(try await hold.waitUntilHeld().contains("first"))
                try await ask(proxy, .endTxn, "repeated")
                #expect(broker.requests.map { $0.contains("first") } == [false])
                let response = try await hold.release()
                #expect(response.int16(at: 4) == 2)
                #expect(broker.requests.map { $0.contains("first") } == [false, true])
                #expect(proxy.count(of: .endTxn) == 2)
            }
        }

        @Test func `cuts the client of a held request at once when asked to`() async throws {
            try await withProxy { proxy, broker in
                let hold = proxy.hold(.txnOffsetCommit, client: .cut)
                // A client that only waits would get its own time-out, a SystemFailure.
                await #expect(throws: WireFault.self) { try await ask(proxy, .txnOffsetCommit) }
                #expect(broker.keys == [])
                let response = try await hold.release()
                #expect(response.int16(at: 4) == 1)
                #expect(broker.keys == [.txnOffsetCommit])
            }
        }

        @Test func `forwards nothing behind a held request, and the answers to a client that waited`() async throws {
            try await withProxy { proxy, broker in
                let hold = proxy.hold(.endTxn)
                let port = proxy.ports[0]
                let answers = Task {
                    try await onOwnThread("client") {
                        var connection = try WireConnection(port: port, limit: .seconds(30))
                        try connection.send(.endTxn, version: 0, body: [])
                        try connection.send(.metadata, version: 0, body: [])
                        return [try connection.receive(), try connection.receive()]
                    }
                }
                try await hold.waitUntilHeld()
                #expect(try await ask(proxy, .fetch) == 1)
                #expect(broker.keys == [.fetch])
                let released = try await hold.release()
                #expect(try await answers.value == [released.bytes, [0, 0, 0, 2, 0, 3]])
                #expect(broker.keys == [.fetch, .endTxn, .metadata])
            }
        }

        @Test func `holds the request that a rule means, and one only`() async throws {
            try await withProxy { proxy, broker in
                let second = proxy.hold(.endTxn, occurrence: 2, client: .cut) { $0.contains("mine") }
                try await ask(proxy, .endTxn, "mine 1")
                try await ask(proxy, .endTxn, "other")
                try await ask(proxy, .metadata, "mine")
                await #expect(throws: (any Error).self) { try await ask(proxy, .endTxn, "mine 2") }
                #expect(second.request?.contains("mine 2") == true)
                try await ask(proxy, .endTxn, "mine 3")
                #expect(broker.requests.count == 4)
            }
        }

        @Test func `loses a held request that is discarded`() async throws {
            try await withProxy { proxy, broker in
                let hold = proxy.hold(.endTxn)
                let answer = Task { try await ask(proxy, .endTxn) }
                try await hold.waitUntilHeld()
                hold.discard()
                await #expect(throws: (any Error).self) { try await answer.value }
                await #expect(throws: KafkaTestFault.self) { try await hold.release() }
                #expect(broker.keys == [])
            }
        }

        @Test func `delays one API and no other`() async throws {
            try await withProxy { proxy, _ in
                proxy.delay(.produce, by: .milliseconds(500))
                let delayed = try await ContinuousClock().measure { try await ask(proxy, .produce) }
                #expect(delayed >= .milliseconds(500))
                // Longer than a machine may stand still before the next question is overtaking.
                proxy.delay(.produce, by: .seconds(6))
                let produced = Task { try await ask(proxy, .produce) }
                try await waitUntil("the second request has arrived") { proxy.count(of: .produce) == 2 }
                let overtaking = try await ask(proxy, .metadata)
                #expect(overtaking == 2)
                #expect(try await produced.value == 3)
                proxy.delay(.produce, by: .seconds(60))
                proxy.delay(.produce, by: nil)
                try await ask(proxy, .produce)
            }
        }

        @Test func `cuts every connection, but keeps what is held`() async throws {
            try await withProxy { proxy, broker in
                let hold = proxy.hold(.endTxn)
                let held = Task { try await ask(proxy, .endTxn) }
                try await hold.waitUntilHeld()
                proxy.delay(.fetch, by: .seconds(60))
                let delayed = Task { try await ask(proxy, .fetch) }
                try await waitUntil("the delayed request has arrived") { proxy.count(of: .fetch) == 1 }
                proxy.dropConnections()
                await #expect(throws: (any Error).self) { try await held.value }
                await #expect(throws: (any Error).self) { try await delayed.value }
                try await ask(proxy, .metadata)
                try await hold.release()
                #expect(broker.keys == [.metadata, .endTxn])
            }
        }

        @Test func `says that a released request got no answer when the broker has gone`() async throws {
            try await withProxy { proxy, broker in
                let hold = proxy.hold(.endTxn, client: .cut)
                await #expect(throws: (any Error).self) { try await ask(proxy, .endTxn) }
                try await hold.waitUntilHeld()
                try await waitUntil("the broker has accepted the connection") { broker.connectionCount == 1 }
                broker.cutAll()
                try await waitUntil("the client knows of the loss") { hold.request == nil }
                await #expect { try await hold.release() } throws: { "\($0)".contains("closed the connection") }
            }
        }

        @Test func `closes what does not speak Kafka`() async throws {
            try await withProxy { proxy, broker in
                let port = proxy.ports[0]
                let answer = try await onOwnThread("client") {
                    let connection = try Loopback.connect(port: port, limit: .seconds(30))
                    try connection.sendAll(Array("GET / HTTP/1.1\r\n\r\n".utf8))
                    return try readToEnd(connection)
                }
                #expect(answer == [])
                #expect(broker.keys == [])
            }
        }

        @Test func `frees its port and ends its holds when it is closed`() async throws {
            try await FakeBroker.serving { broker in
                let proxy = try FrameProxy(brokerPorts: [broker.port])
                let hold = proxy.hold(.endTxn)
                let answer = Task { try await ask(proxy, .endTxn) }
                try await hold.waitUntilHeld()
                let waiting = proxy.hold(.fetch)
                await proxy.close()
                await #expect(throws: (any Error).self) { try await answer.value }
                await #expect { try await waiting.waitUntilHeld() } throws: { "\($0)".contains("closed") }
                await #expect { try await hold.release() } throws: { "\($0)".contains("closed") }
                #expect(Loopback.isFree(proxy.ports[0]))
            }
        }

        @Test func `ends with its last reference`() async throws {
            var proxy: FrameProxy? = try FrameProxy(brokerPorts: [1])
            let port = try #require(proxy?.ports[0])
            proxy = nil
            try await waitUntil("the port is free") { Loopback.isFree(port) }
        }
    }
}
