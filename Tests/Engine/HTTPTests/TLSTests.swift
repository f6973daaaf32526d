import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Platform
import TestTraits
import Testing

@testable import HTTP

@Suite(.ownThreads) struct `An HTTP server with TLS` {
    /// A certificate for this run.
    private static let identity = Task { try await makeIdentity("localhost") }

    private static let identityOfRSA = Task { try await makeIdentity("localhost", ["rsa:2048"]) }

    private static func makeIdentity(
        _ name: String, _ key: [String] = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    ) async throws -> HTTPServer.Identity {
        let folder = try ScratchDirectory("http-tests")
        let (certificate, keyFile) = ("\(folder.path)/certificate.pem", "\(folder.path)/key.pem")
        let made = try await openssl(
            [
                "req", "-x509", "-nodes", "-keyout", keyFile, "-out", certificate, "-subj", "/CN=\(name)",
                "-addext", "subjectAltName=DNS:localhost", "-days", "2", "-newkey",
            ] + key)
        try #require(made.code == 0, "\(made.words)")
        return HTTPServer.Identity(certificate: try readFile(certificate), key: try readFile(keyFile))
    }

    /// From the Debian package openssl.
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
        // Security level 0, so that the client itself allows old versions.
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
            #expect(!said.contains("and written 0 bytes"), "the client itself refused: \(said)")
        }
    }

    /// To a server with an RSA key, because static key exchange exists only there.
    private static func hello(_ options: [String]) async throws -> String {
        let identity = try await identityOfRSA.value
        let server = try TestServer { $0.identity = identity }
        defer { server.stop() }
        return try await openssl(["s_client", "-connect", "127.0.0.1:\(server.port)"] + options).words
    }

    private static let level0 = ":@SECLEVEL=0"

    @Test(arguments: [
        ("keys that are not made anew", ["-tls1_2", "-cipher", "AES128-GCM-SHA256"]),
        ("the same, with CBC and SHA-1", ["-tls1_2", "-cipher", "AES128-SHA\(level0)"]),
        ("CBC", ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA256"]),
        ("CBC of 256 bits", ["-tls1_2", "-cipher", "ECDHE-RSA-AES256-SHA384"]),
        ("SHA-1 over records", ["-tls1_2", "-cipher", "ECDHE-RSA-AES256-SHA\(level0)"]),
        (
            "SHA-1 in signatures",
            ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256\(level0)", "-sigalgs", "RSA+SHA1"]
        ),
        ("Diffie-Hellman of 8192 bits", ["-tls1_3", "-groups", "ffdhe8192"]),
        ("Diffie-Hellman without curves", ["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"]),
    ]) func `refuses weak or dear parts of TLS`(_ what: String, _ options: [String]) async throws {
        let said = try await Self.hello(options)
        #expect(said.contains("Cipher is (NONE)") && said.contains("has read 0 bytes"), "\(what): \(said)")
        #expect(!said.contains("and written 0 bytes"), "the client itself refused: \(what): \(said)")
    }

    @Test(arguments: [
        ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"], ["-tls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384"],
        ["-tls1_2", "-cipher", "ECDHE-RSA-CHACHA20-POLY1305"], ["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"],
        ["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384"], ["-tls1_3", "-groups", "P-256"],
    ]) func `takes what clients of today offer`(_ options: [String]) async throws {
        let said = try await Self.hello(options)
        let wanted = options[1] == "-groups" ? "TLS_AES_128_GCM_SHA256" : options[2]
        #expect(said.contains("Cipher is \(wanted)"), "\(said)")
    }

    @Test func `takes of what a client offers what costs least`() async throws {
        let ciphers = ["-ciphersuites", "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256"]
        // OpenSSL sends a share of the first group only, and is asked for another.
        let said = try await Self.hello(["-tls1_3", "-groups", "P-256:X25519:P-384"] + ciphers)
        #expect(said.contains("Cipher is TLS_AES_128_GCM_SHA256") && said.contains("Temp Key: X25519"), "\(said)")
        let older = try await Self.hello(["-tls1_2", "-groups", "P-256:X25519", "-cipher", "ECDHE+AESGCM"])
        #expect(older.contains("Cipher is ECDHE-RSA-AES128-GCM-SHA256"), "\(older)")
        #expect(older.contains("Temp Key: X25519"), "\(older)")
    }

    private static let curve = ["ec", "-pkeyopt"]
    private static let keys: [String: [String]] = [
        "rsa": ["rsa:2048"], "p256": curve + ["ec_paramgen_curve:P-256"], "p384": curve + ["ec_paramgen_curve:P-384"],
        "p521": curve + ["ec_paramgen_curve:P-521"], "ed25519": ["ed25519"], "rsa-pss": ["rsa-pss"],
    ]

    /// The client checks the signature, and names its digest.
    @Test(arguments: [
        ("rsa", "-tls1_3", "RSA-PSS+SHA256"), ("rsa", "-tls1_3", "RSA-PSS+SHA512"), ("rsa", "-tls1_2", "RSA+SHA384"),
        ("rsa", "-tls1_2", "RSA-PSS+SHA384"), ("p256", "-tls1_3", "ECDSA+SHA256"), ("p256", "-tls1_2", "ECDSA+SHA512"),
        ("p384", "-tls1_3", "ECDSA+SHA384"), ("p521", "-tls1_3", "ECDSA+SHA512"), ("ed25519", "-tls1_3", "ed25519"),
        ("rsa-pss", "-tls1_3", "rsa_pss_pss_sha256"),
    ]) func `signs with each key`(_ key: String, _ version: String, _ form: String) async throws {
        let identity = try await Self.makeIdentity("localhost", try #require(Self.keys[key]))
        let server = try TestServer { $0.identity = identity }
        defer { server.stop() }
        let asked = ["s_client", "-connect", "127.0.0.1:\(server.port)", version, "-sigalgs", form]
        let said = try await Self.openssl(asked).words
        #expect(said.contains("Peer signature type: ") && !said.contains("Cipher is (NONE)"), "\(said)")
        if let digest = form.split(separator: "+").dropFirst().first {
            #expect(said.contains("Peer signing digest: \(digest)\n"), "\(said)")
        }
    }

    @Test(arguments: [
        ("rsa", true), ("p256", true), ("p384", true), ("p521", true), ("ed25519", false), ("rsa-pss", false),
    ]) func `lets OpenSSL sign with RSA and curves`(_ key: String, _ isSigned: Bool) async throws {
        let identity = try TLSIdentity(try await Self.makeIdentity("localhost", try #require(Self.keys[key])))
        #expect(identity.isSignedByOpenSSL == isSigned)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"]) func `knows a client that comes again by its ticket`(_ version: String)
        async throws
    {
        try await withServer { server in
            let folder = try ScratchDirectory("http-tests")
            let session = "\(folder.path)/session"
            let get = "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
            let common = ["s_client", "-connect", "127.0.0.1:\(server.port)", version, "-ign_eof"]
            let first = try await Self.openssl(common + ["-sess_out", session], input: get).words
            #expect(first.contains("New, TLSv1") && first.contains("hello"), "\(first)")
            let second = try await Self.openssl(common + ["-sess_in", session], input: get).words
            #expect(second.contains("Reused, TLSv1") && second.contains("hello"), "\(second)")
        }
    }

    @Test func `tells a key of RSA from one of ECDSA`() async throws {
        #expect(try await Self.identityOfRSA.value.term().hasRSAKey)
        #expect(try await !Self.identity.value.term().hasRSAKey)
    }

    @Test func `closes a client that speaks plaintext or drips its handshake`() async throws {
        let identity = try await Self.identity.value
        let server = try TestServer {
            $0.identity = identity
            $0.requestDeadline = .seconds(1)
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

    @Test func `does not count a client as unreadable that says that it closes`() async throws {
        try await withServer { server in
            var options = HTTPClient.Configuration()
            options.extraAuthorities = try await Self.identity.value.certificate
            for _ in 0..<20 {
                let client = try HTTPClient(options)
                #expect(try client.answer(to: .init("GET", "https://localhost:\(server.port)/")).status == 200)
                client.close()
            }
            // Version 1.2 has another message for it.
            _ = try await request(server, "-tls1_2", "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
            try await server.waitUntilConnections(0)
            #expect(server.refused("unreadable") == 0)
        }
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

    @Test func `shows new connections a certificate that replaced another, and goes on with the old ones`() async throws
    {
        try await withServer { server in
            // Trusts only the first certificate: its next new connection would fail.
            var options = HTTPClient.Configuration()
            options.extraAuthorities = try await Self.identity.value.certificate
            let open = try HTTPClient(options)
            defer { open.close() }
            let get = HTTPClient.Request("GET", "https://localhost:\(server.port)/")
            #expect(try open.answer(to: get).status == 200)
            let next = try await Self.makeIdentity("replaced")
            #expect(try server.server.replaceIdentity(next))
            let said = try await request(server, "-tls1_3", "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
            #expect(said.contains(#/CN ?= ?replaced/#) && said.contains("hello"), "\(said)")
            #expect(try open.answer(to: get).status == 200)
            #expect(try !server.server.replaceIdentity(next))
        }
    }

    @Test func `keeps its certificate when another cannot be used`() async throws {
        try await withServer { server in
            let other = try await Self.makeIdentity("other")
            let identity = try await Self.identity.value
            let mixed = HTTPServer.Identity(certificate: other.certificate, key: identity.key)
            #expect(throws: HTTPServerFault.self) { try server.server.replaceIdentity(mixed) }
            let said = try await request(server, "-tls1_2", "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
            #expect(said.contains(#/CN ?= ?localhost/#) && said.contains("hello"), "\(said)")
        }
    }
}
