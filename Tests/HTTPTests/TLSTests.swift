import Foundation
import HTTP
import Testing

@Suite struct `An HTTP server with TLS` {
    /// A certificate of its own for this run.
    static let identity: HTTPServer.Identity? = {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("http-tests-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let certificate = folder.appendingPathComponent("certificate.pem").path
            let key = folder.appendingPathComponent("key.pem").path
            let made = try run(
                "/usr/bin/openssl",
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out",
                    certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2",
                ])
            guard made.status == 0 else { return nil }
            return HTTPServer.Identity(
                certificate: [UInt8](try Data(contentsOf: URL(fileURLWithPath: certificate))),
                key: [UInt8](try Data(contentsOf: URL(fileURLWithPath: key))))
        } catch {
            return nil
        }
    }()

    private func withServer(_ body: (TestServer) throws -> Void) throws {
        let identity = try #require(Self.identity, "openssl (Debian package openssl) must be installed")
        let server = try TestServer { $0.identity = identity }
        defer { server.stop() }
        try body(server)
    }

    private func request(_ server: TestServer, _ version: String, _ request: String) throws -> String {
        // Level 0, so that the client itself has nothing against old versions.
        try run(
            "/usr/bin/openssl",
            ["s_client", "-connect", "127.0.0.1:\(server.port)", version, "-cipher", "ALL:@SECLEVEL=0", "-ign_eof"],
            input: request
        ).output
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"]) func `speaks TLS 1.2 and 1.3`(_ version: String) throws {
        try withServer { server in
            let said = try request(
                server, version,
                "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nConnection: close\r\n\r\n<abc>")
            #expect(said.contains("HTTP/1.1 200 OK") && said.contains("<abc>"), "\(said)")
        }
    }

    @Test(arguments: ["-tls1", "-tls1_1"]) func `refuses older versions`(_ version: String) throws {
        try withServer { server in
            let said = try request(server, version, "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
            #expect(said.contains("Cipher is (NONE)") && said.contains("handshake has read 0 bytes"), "\(said)")
            #expect(!said.contains("and written 0 bytes"), "the client itself did not want to: \(said)")
        }
    }

    @Test func `closes a client that speaks plaintext or drips its handshake`() throws {
        let identity = try #require(Self.identity)
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

    @Test func `does not start with a certificate that is none, or a key of another one`() throws {
        let identity = try #require(Self.identity)
        let nonsense = HTTPServer.Identity(certificate: Array("nonsense".utf8), key: identity.key)
        let swapped = HTTPServer.Identity(certificate: identity.certificate, key: identity.certificate)
        let torn = HTTPServer.Identity(certificate: identity.certificate, key: Array(identity.key.prefix(60)))
        for bad in [nonsense, swapped, torn] {
            let fault = #expect(throws: HTTPServerFault.self) { try TestServer { $0.identity = bad } }
            #expect(fault?.description.contains("certificate") == true)
        }
    }
}
