import Crypto
import Kafka
import KafkaTestKit
import Platform
import RDKafkaTestKit
import Testing

/// What the program reports about the files that refund answers need.
@Suite struct `perennial check of refund answers` {
    private func check(_ arguments: [String], servers: String = "127.0.0.1:1") async throws -> ProgramResult {
        try await perennial(["check", "--kafka.bootstrap.servers", servers] + arguments)
    }

    @Test func `tells all that is wrong in a policy with line and column, and exits 2`() async throws {
        let folder = try ScratchDirectory("check")
        let path = try folder.write(
            """
            {"version": "1",
             "ruels": [],
             "rules": [{"name": "a", "when": {"reson": "LEGAL"}, "answer": {"refundPreference": "GRANT-FULL"}}]}
            """, to: "policy.json")
        let result = try await check(["--consumption.policy", path])
        #expect(result.code == 2 && result.standardOutput.isEmpty, "\(result.words)")
        #expect(
            result.standardError == """
                perennial check: \(path): line 2, column 2: a policy has no member called "ruels"; the nearest is rules
                perennial check: \(path): line 3, column 35: when has no member called "reson"; the nearest is reason
                perennial check: \(path): line 3, column 85: no refundPreference is called "GRANT-FULL"; \
                the nearest is GRANT_FULL

                """)
        for (text, words) in [
            ("{\"version\": \"1", "line 1, column 13: a string is not closed"), ("", "line 1, column 1: "),
        ] {
            let broken = try await check(["--consumption.policy", folder.write(text, to: "broken.json")])
            #expect(broken.code == 2 && broken.standardError.contains(words), "\(broken.words)")
        }
    }

    @Test func `shows the rules and those that can never match, also when Kafka does not answer`() async throws {
        let folder = try ScratchDirectory("check")
        let path = try folder.write(
            """
            {"version": "2026-11", "rules": [
              {"name": "coins", "when": {"productId": "coins.*"}, "answer": {"refundPreference": "DECLINE"}},
              {"name": "big coins", "when": {"productId": "coins.1000", "reason": "LEGALL"}, "answer": {"withhold": true}}],
             "shadow": {"version": "2026-12", "rules": [
              {"name": "percent", "when": {"consumptionPercentage": {"from": 200000}}, "answer": {"refundPreference": null}}]}}
            """, to: "policy.json")
        let result = try await check(["--consumption.policy", path])
        #expect(result.code == 1, "\(result.words)")
        let lines = result.standardOutput.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        #expect(
            lines.prefix(11) == [
                "ok       settings",
                "ok       policy  2026-11, 2 rules",
                "         unless usage says otherwise: deliveryStatus DELIVERED (no default given), "
                    + "sampleContentProvided true when the log has a free trial (no default given)",
                "            rule       when                   answer",
                "         1  coins      productId coins.*      DECLINE",
                "         2  big coins  productId coins.1000   withhold",
                "                       reason LEGALL",
                "            (no rule)  nothing above matches  no preference",
                "warning  policy  the rule \"big coins\" can never match: \"coins\" comes first and matches everything that "
                    + "this rule could match",
                "warning  policy  the rule \"big coins\" tests for a reason that Apple does not use today, \"LEGALL\"; the "
                    + "nearest is LEGAL",
                "ok       shadow  2026-12, 1 rule",
            ])
        #expect(result.standardOutput.contains("\nfault    kafka  no connection"))
        #expect(result.standardError.isEmpty, "\(result.standardError)")
        #expect(
            lines.contains(
                "warning  shadow  the rule \"percent\" can never match: consumptionPercentage is never at least 200000: it is "
                    + "counted from 0 to 100000, thousandths of a percent"), "\(result.standardOutput)")
    }

    @Test func `refuses a key that cannot sign calls to Apple, and shows none of it`() async throws {
        let folder = try ScratchDirectory("check")
        let key = SigningKey(.p256)
        let right = try folder.write(String(decoding: key.pem, as: UTF8.self), to: "right.p8")
        let other = try folder.write(String(decoding: SigningKey(.p384).pem, as: UTF8.self), to: "other.p8")
        let broken = try folder.write(String(decoding: key.pem.dropLast(60), as: UTF8.self), to: "broken.p8")
        func apple(_ key: String, _ more: [String] = []) -> [String] {
            ["--apple.issuer.id", "issuer", "--apple.key.id", "KEY", "--apple.key", key] + more
        }
        for (path, words) in [
            (other, "\(other): the key is not on the curve P-256"), (broken, "\(broken): no private key in PEM"),
        ] {
            for given in [path, "file:\(path)"] {
                let result = try await check(apple(given))
                #expect(result.code == 2, "\(result.words)")
                #expect(
                    result.standardError.contains(words.drop { given == path ? false : $0 != ":" }), "\(result.words)")
                #expect(!result.words.contains("PRIVATE KEY-----") && !result.words.contains("MIG"))
            }
        }
        let authority = try folder.write("no certificate", to: "authority.pem")
        let wrong = try await check(apple(right, ["--apple.ca", authority]))
        #expect(wrong.code == 2 && wrong.standardError.contains("apple.ca \(authority): no certificate in the file"))
        // All errors at once.
        let both = try await check(apple(other, ["--apple.ca", authority, "--consumption.policy", authority]))
        #expect(both.code == 2 && both.standardError.split(separator: "\n").count == 3, "\(both.words)")
    }

    @Test func `takes the key and the authority that are right`() async throws {
        let cluster = try MockCluster()
        defer { cluster.close() }
        let folder = try ScratchDirectory("check")
        let (key, now) = (SigningKey(.p256), WallClock.milliseconds())
        let request = CertificateRequest(
            commonName: "authority", serial: [1], validity: now - 3_600_000...now + 86_400_000,
            extensions: [.basicConstraints(isAuthority: true, pathLength: nil)])
        let certificate = try Certificate.make(request, key: key)
        let result = try await check(
            [
                "--apple.issuer.id", "issuer", "--apple.key.id", "KEY", "--apple.key",
                folder.write(String(decoding: key.pem, as: UTF8.self), to: "key.p8"), "--apple.ca",
                folder.write(String(decoding: certificate.pem, as: UTF8.self), to: "authority.pem"),
            ], servers: cluster.bootstrapServers)
        #expect(result.standardOutput.hasPrefix("ok       settings\nok       apple.key  on P-256\nok       apple.ca\n"))
        // The topics are missing.
        #expect(result.code == 1, "\(result.words)")
        let der = "\(folder.path)/authority.der"
        try OutputFile.write(certificate.der, to: der)
        let binary = try await check(["--apple.ca", der])
        #expect(binary.code == 2 && binary.standardError.contains("it is DER; write it as PEM"), "\(binary.words)")
    }
}

@Suite struct `perennial check of a role` {
    /// Nothing listens at the broker's address: Kafka is the last item of the report.
    private func check(_ arguments: [String]) async throws -> ProgramResult {
        try await perennial(["check", "--kafka.bootstrap.servers", "127.0.0.1:1"] + arguments)
    }

    private static let day: Int64 = 86_400_000
    private static let subject = "CN=notify.example.com,O=Perennial"

    /// - Parameter days: days from now for which the certificate is valid; it ends half a day later.
    private func tls(_ folder: ScratchDirectory, _ days: ClosedRange<Int64>) throws -> [String] {
        let (key, now) = (SigningKey(.p256), WallClock.milliseconds())
        let request = CertificateRequest(
            commonName: "notify.example.com", serial: [1],
            validity: now + days.lowerBound * Self.day...now + days.upperBound * Self.day + Self.day / 2,
            extensions: [.basicConstraints(isAuthority: false, pathLength: nil)])
        let certificate = try Certificate.make(request, key: key)
        return try [
            "--ingest.tls.certificate", folder.write(String(decoding: certificate.pem, as: UTF8.self), to: "tls.pem"),
            "--ingest.tls.key", folder.write(String(decoding: key.pem, as: UTF8.self), to: "tls.key"),
        ]
    }

    @Test(arguments: [
        (-3...(-1), "fault    ingest.tls.certificate  the TLS certificate \(subject) expired at "),
        (1...90, "fault    ingest.tls.certificate  the TLS certificate \(subject) is not valid before "),
        (-60...20, "warning  ingest.tls.certificate  the TLS certificate \(subject) expires in 20 days"),
        (-60...21, "ok       ingest.tls.certificate  \(subject), until "),
    ])
    func `says until when a certificate is valid`(days: ClosedRange<Int64>, line: String) async throws {
        let folder = try ScratchDirectory("check")
        let apps = try folder.write(#"[{"bundleId":"com.example.app"}]"#, to: "apps.json")
        let result = try await check(["ingest", "--apps", apps] + tls(folder, days))
        #expect(result.code == 1 && result.standardOutput.contains("\n" + line), "\(result.words)")
    }

    @Test func `advises a key of ECDSA where there is one of RSA`() async throws {
        let folder = try ScratchDirectory("check")
        let apps = try folder.write(#"[{"bundleId":"com.example.app"}]"#, to: "apps.json")
        let (certificate, key) = ("\(folder.path)/tls.pem", "\(folder.path)/tls.key")
        let made = try await run(
            "openssl",
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                "-subj", "/CN=notify.example.com", "-days", "90",
            ])
        try #require(made.code == 0, "\(made.words)")
        let rsa = try await check([
            "ingest", "--apps", apps, "--ingest.tls.certificate", certificate, "--ingest.tls.key", key,
        ])
        let advice = "\nwarning  ingest.tls.certificate  its key is RSA: "
        #expect(rsa.standardOutput.contains(advice) && rsa.standardOutput.contains("--key-type ecdsa"), "\(rsa.words)")
        #expect(rsa.standardOutput.contains("\nok       ingest.tls.certificate  CN=notify.example.com, until "))
    }

    @Test func `judges the settings and files of that role, and no other's`() async throws {
        let folder = try ScratchDirectory("check")
        let broken = try folder.write("nonsense", to: "broken")
        let others = [
            "--ingest.tls.certificate", broken, "--ingest.tls.key", broken, "--consumption.policy", broken,
            "--apple.key", broken,
        ]
        let api = try await check(["api"] + others)
        #expect(api.code == 1 && api.standardOutput.hasPrefix("ok       settings\n"), "\(api.words)")
        let all = try await check(others + ["--apps", broken])
        #expect(all.code == 2 && all.standardError.contains(broken), "\(all.words)")
        // As the role itself does when it refuses to start.
        let ingest = try await check(["ingest"])
        #expect(ingest.code == 2 && ingest.standardError.contains("apps is not set"), "\(ingest.words)")
        #expect(ingest.standardError.contains("ingest has no certificate"), "\(ingest.words)")
        for arguments in [["check", "consumption"], ["consumption"]] {
            let answers = try await perennial(arguments + ["--kafka.bootstrap.servers", "127.0.0.1:1"])
            #expect(answers.code == 2 && answers.standardError.contains("apps is not set"), "\(answers.words)")
            #expect(answers.standardError.contains("no App Store Server API key"), "\(answers.words)")
        }
    }
}
