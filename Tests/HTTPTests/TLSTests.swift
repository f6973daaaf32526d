import HTTP
import KafkaTestKit
import Platform
import Testing

@Suite(.ownThreads) struct `An HTTP server with TLS` {
    /// A certificate of its own for this run.
    private static let identity = Task {
        let folder = try ScratchDirectory("http-tests")
        let (certificate, key) = ("\(folder.path)/certificate.pem", "\(folder.path)/key.pem")
        let made = try await openssl([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
            "-out", certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2",
        ])
        try #require(made.code == 0, "\(made.words)")
        return HTTPServer.Identity(certificate: try readFile(certificate), key: try readFile(key))
    }

    /// Of the Debian package openssl.
    private static func openssl(_ arguments: [String], input: String = "") async throws -> ProgramResult {
        try await run("openssl", arguments, stdin: input)
    }

    private func withServer(_ body: (TestServer) async throws -> Void) async throws {
        let identity = try await Self.identity.value
        let server = try TestServer { $0.identity = identity }
        defer { server.stop() }
        try await body(server)
    }

    private func request(_ server: TestServer, _ version: String, _ request: String) async throws -> String {
        // Level 0, so that the client itself has nothing against old versions.
        try await Self.openssl(
            ["s_client", "-connect", "127.0.0.1:\(server.port)", version, "-cipher", "ALL:@SECLEVEL=0", "-ign_eof"],
            input: request
        ).words
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"]) func `speaks TLS 1.2 and 1.3`(_ version: String) async throws {
        try await withServer { server in
            let said = try await request(
                server, version,
                "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nConnection: close\r\n\r\n<abc>")
            #expect(said.contains("HTTP/1.1 200 OK") && said.contains("<abc>"), "\(said)")
        }
    }

    @Test(arguments: ["-tls1", "-tls1_1"]) func `refuses older versions`(_ version: String) async throws {
        try await withServer { server in
            let said = try await request(server, version, "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
            #expect(said.contains("Cipher is (NONE)") && said.contains("handshake has read 0 bytes"), "\(said)")
            #expect(!said.contains("and written 0 bytes"), "the client itself did not want to: \(said)")
        }
    }

    @Test func `closes a client that speaks plaintext or drips its handshake`() async throws {
        let identity = try await Self.identity.value
        let server = try TestServer {
            $0.identity = identity
            $0.requestDeadline = .milliseconds(300)
        }
        defer { server.stop() }
        let plain = try server.client()
        plain.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
        #expect(try !plain.readToEnd().contains("hello"))
        let dripping = try server.client()
        dripping.send([0x16, 0x03])
        #expect(try dripping.readToEnd() == "")
        #expect(server.refused("timed_out") == 1)
    }

    @Test func `does not start with a certificate that is none, or a key of another one`() async throws {
        let identity = try await Self.identity.value
        let nonsense = HTTPServer.Identity(certificate: Array("nonsense".utf8), key: identity.key)
        let swapped = HTTPServer.Identity(certificate: identity.certificate, key: identity.certificate)
        let torn = HTTPServer.Identity(certificate: identity.certificate, key: Array(identity.key.prefix(60)))
        for bad in [nonsense, swapped, torn] {
            let fault = #expect(throws: HTTPServerFault.self) { try TestServer { $0.identity = bad } }
            #expect(fault?.description.contains("certificate") == true)
        }
    }
}
