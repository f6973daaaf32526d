import HTTP
import Platform
import Synchronization
import Testing

@Suite struct `Stopping an HTTP server` {
    @Test func `loses no answer of busy clients`() async throws {
        let server = try TestServer { $0.drainGrace = .seconds(1) }
        let port = server.port
        let lost = Atomic(0)
        let answered = Atomic(0)
        let clients = (0..<16).map { index in
            WorkerThread.start("client-\(index)") {
                let client = try RawClient(port: port)
                while true {
                    guard let answer = try? client.get("/") else {
                        lost.add(1, ordering: .relaxed)
                        return
                    }
                    answered.add(1, ordering: .relaxed)
                    if answer.has("Connection: close") { return }
                }
            }
        }
        #expect(eventually { answered.load(ordering: .relaxed) > 1000 })
        #expect(server.stop())
        for client in clients { try await client.join() }
        #expect(lost.load(ordering: .relaxed) == 0)
    }

    @Test func `waits for what handlers hold`() async throws {
        let holder = Holder()
        let server = try TestServer(holder)
        let client = try server.client()
        client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
        #expect(eventually { holder.count == 1 })
        let isStopped = Latch()
        let stopping = WorkerThread.start("stops") {
            #expect(server.stop())
            isStopped.open()
        }
        #expect(!isStopped.wait(for: .milliseconds(300)))
        holder.take()[0].responder.respond(.text(200, "at last"))
        let answer = try client.answer()
        #expect(answer.text == "at last\n" && answer.has("Connection: close"))
        try await stopping.join()
    }

    @Test func `answers 503 at its deadline for a handler that does not`() throws {
        let holder = Holder()
        let server = try TestServer(holder)
        let client = try server.client()
        client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
        #expect(eventually { holder.count == 1 })
        let begin = ContinuousClock.now
        #expect(!server.stop(.milliseconds(300)))
        #expect(begin.duration(to: .now) < .seconds(3))
        let answer = try client.answer()
        #expect(answer.status == 503 && answer.has("Retry-After: 60"))
        #expect(server.refused("stopped") == 1)
        #expect(!holder.take()[0].responder.respond(.text(200, "too late")))
    }

    @Test func `refuses new connections at once`() throws {
        let holder = Holder()
        let server = try TestServer(holder)
        let client = try server.client()
        client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
        #expect(eventually { holder.count == 1 })
        let isStopped = Latch()
        WorkerThread.start("stops") {
            server.stop()
            isStopped.open()
        }
        #expect(eventually { (try? server.client()) == nil })
        #expect(!isStopped.isOpen)
        holder.take()[0].responder.respond(.text(200, "x"))
        #expect(isStopped.wait(for: .seconds(5)))
    }

    @Test func `closes idle and silent connections after the grace`() throws {
        let server = try TestServer()
        let idle = try server.client()
        #expect(try idle.get("/").status == 200)
        let silent = try server.client()
        #expect(eventually { server.metric(#"perennial_http_connections{server="test"}"#) == 2 })
        #expect(server.stop())
        #expect(try idle.readToEnd() == "")
        #expect(try silent.readToEnd() == "")
    }

    @Test func `frees the port for the next`() throws {
        let first = try TestServer()
        let address = first.server.address
        #expect(try first.client().get("/").status == 200)
        first.stop()
        let second = try TestServer { $0.address = address }
        #expect(try second.client().get("/").status == 200)
        second.stop()
        #expect(second.stop())
    }
}

@Suite struct `A listening address` {
    @Test(
        arguments: [
            ("127.0.0.1:9464", "127.0.0.1", 9464), ("localhost:0", "localhost", 0), ("[::1]:65535", "::1", 65535),
        ] as [(String, String, UInt16)])
    func `is a host and a port`(_ text: String, _ host: String, _ port: UInt16) throws {
        let address = try ListenAddress(text)
        #expect(address.host == host && address.port == port && address.description == text)
    }

    @Test(arguments: [
        ("9464", "host:port"), (":9464", "0.0.0.0"), ("::1:80", "brackets"), ("a:65536", "65535"), ("a:", "65535"),
        ("a:+1", "65535"), ("[]:1", "0.0.0.0"), ("a b:1", "0.0.0.0"), ("http://a:1", "brackets"),
    ])
    func `that is wrong gets advice`(_ text: String, _ advice: String) {
        let fault = #expect(throws: HTTPServerFault.self) { try ListenAddress(text) }
        #expect(fault?.description.contains(advice) == true, "\(String(describing: fault))")
    }

    @Test func `that another process has is named, with what to do`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let fault = #expect(throws: HTTPServerFault.self) { try TestServer { $0.address = server.server.address } }
        #expect(fault?.description.contains("127.0.0.1:\(server.port)") == true)
        #expect(fault?.description.contains("another process has the port") == true)
    }

    @Test func `of no interface of the machine is named`() throws {
        let address = try ListenAddress("192.0.2.1:0")
        let fault = #expect(throws: HTTPServerFault.self) { try TestServer { $0.address = address } }
        #expect(fault?.description.contains("192.0.2.1:0") == true)
    }

    @Test func `may be IPv6, and takes IPv4 too when it is all addresses`() throws {
        let address = try ListenAddress("[::]:0")
        let server = try TestServer { $0.address = address }
        defer { server.stop() }
        #expect(try server.client().get("/headers").text == " - 127.0.0.1\n")
    }
}
