import Cluster
import Contract
import Foundation
import Kafka
import Platform
import Settings
import Testing

@testable import Configuration

private func load(
    _ command: CommandName = .check, _ arguments: [String] = [], _ environment: [(name: String, value: String)] = [],
) throws -> Configuration {
    try Configuration.load(
        command, arguments: ParsedArguments(arguments, options: []), environment: environment,
        judge: { ClientProperties.complaints($0) })
}

private func faults(
    _ command: CommandName = .check, _ arguments: [String]
) -> [String] {
    do {
        _ = try load(command, arguments)
        return []
    } catch {
        return (error as? ConfigurationFaults)?.faults.map(\.description) ?? ["\(error)"]
    }
}

@Suite struct `The configuration` {
    @Test func `has the defaults of the contract`() {
        let expected: [(String, String?)] = [
            ("topic.prefix", "appstore"), ("environment", "production"), ("partitions", "12"),
            ("topics.replication.factor", "3"), ("topics.min.insync.replicas", "2"), ("apps", nil),
            ("ingest.listen", "0.0.0.0:8443"), ("ingest.tls.certificate", nil), ("ingest.tls.key", nil),
            ("ingest.plaintext", "false"), ("ingest.allow", "any"), ("ingest.trusted.proxies", nil),
            ("ingest.max.body.bytes", "262144"), ("ingest.timeout.ms", "2000"), ("ingest.max.in.flight", "2048"),
            ("ingest.repeated.ms", "10800000"), ("ingest.max.buffered.bytes", "67108864"),
            ("rejected.max.bytes.per.hour", "67108864"),
            ("verify.roots", nil), ("verify.ocsp", "off"),
            ("archive.signed.payloads", "true"), ("log.format", "json"), ("log.level", "info"),
            ("admin.listen", "127.0.0.1:9464"), ("state.directory", "./state"), ("state.cache.bytes", "268435456"),
            ("worker.threads", "1"), ("worker.slot", "auto"), ("worker.leave", "false"), ("commit.interval.ms", "20"),
            ("tick.interval.ms", "60000"), ("entitlements.leeway.ms", "3600000"), ("churn.zone", "UTC"),
            ("api.listen", "127.0.0.1:8080"), ("api.token", nil), ("api.max.behind.ms", "600000"),
            ("usage.token", nil), ("consumption.policy", nil),
            ("consumption.wait.ms", "3600000"), ("consumption.send", "true"), ("consumption.rate", "50"),
            ("apple.issuer.id", nil),
            ("apple.key.id", nil), ("apple.key", nil), ("apple.api.production", "https://api.storekit.apple.com"),
            ("apple.api.sandbox", "https://api.storekit-sandbox.apple.com"), ("apple.ca", nil),
        ]
        #expect(SettingTable.definitions.map(\.key) == expected.map(\.0))
        #expect(SettingTable.definitions.map(\.defaultText) == expected.map(\.1))
    }

    @Test func `hides what is secret`() {
        let secrets = SettingTable.definitions.filter(\.isSecret).map(\.key)
        #expect(secrets == ["api.token", "usage.token", "apple.key"])
    }

    @Test func `takes several tokens, and hides them all`() throws {
        let configuration = try load(.api, ["--api.token=sixteen-letters-1, sixteen-letters-2"])
        #expect(configuration.api.tokens == ["sixteen-letters-1", "sixteen-letters-2"])
        #expect(configuration.rows.first { $0.key == "api.token" }?.value == "(not shown)")
        #expect(try load(.api).api.tokens == [])
    }

    @Test func `loads without any setting`() throws {
        let configuration = try load()
        #expect(configuration.names.topic(.notifications) == "appstore.production.notifications")
        #expect(configuration.topicPlan.partitions == 12)
        #expect(configuration.entitlementsLeeway == .seconds(3600))
        #expect(configuration.worker.commitInterval == .milliseconds(20))
        #expect(configuration.ingest.listen.description == "0.0.0.0:8443")
        #expect(configuration.apps.isEmpty)
    }

    @Test func `every command of every setting is one of the contract, and check reads all`() {
        let commands = Set(CommandName.allCases.map(\.rawValue))
        for definition in SettingTable.definitions {
            #expect(definition.readers.allSatisfy(commands.contains))
            #expect(definition.readers.last == "check")
            #expect(definition.effect.hasSuffix("."))
        }
    }

    @Test func `gives sandbox a leeway of a minute unless one is set`() throws {
        #expect(try load(.check, ["--environment=sandbox"]).entitlementsLeeway == .seconds(60))
        let set = try load(.check, ["--environment=sandbox", "--entitlements.leeway.ms=3600000"])
        #expect(set.entitlementsLeeway == .seconds(3600))
    }

    @Test func `names both environments unless one is given`() throws {
        #expect(try load(.topics).namedEnvironments == [.production, .sandbox])
        #expect(try load(.topics, ["--environment=production"]).namedEnvironments == [.production])
        let variable = try load(.topics, [], [(name: "PERENNIAL_ENVIRONMENT", value: "sandbox")])
        #expect(variable.namedEnvironments == [.sandbox])
    }

    @Test func `hands properties of librdkafka on in order, with the kind of client`() throws {
        let configuration = try load(
            .check, ["--kafka.producer.linger.ms=1"], [(name: "PERENNIAL_KAFKA_BOOTSTRAP_SERVERS", value: "a:9092")])
        #expect(
            configuration.clientProperties.properties == [
                .init(name: "bootstrap.servers", value: "a:9092"),
                .init(kind: .producer, name: "linger.ms", value: "1"),
            ])
    }

    @Test func `reads the apps for a command that needs them, and only then`() throws {
        let path = NSTemporaryDirectory() + "apps-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try #"[{"bundleId": "com.example.app", "appAppleId": 123}]"#.write(
            toFile: path, atomically: true, encoding: .utf8)
        #expect(try load(.entitlements, ["--apps", path]).apps.map(\.bundleId) == ["com.example.app"])
        try "[1]".write(toFile: path, atomically: true, encoding: .utf8)
        #expect(faults(.entitlements, ["--apps", path]).count == 1)
        #expect(faults(.topics, ["--apps", path]) == [])
    }

    /// Whoever can write to it decides whose notifications count, and what is answered to Apple.
    @Test(arguments: [("apps", CommandName.entitlements), ("verify.roots", .check), ("consumption.policy", .check)])
    func `warns of a file that others can change, where it is read`(_ key: String, _ reader: CommandName) throws {
        let path = NSTemporaryDirectory() + "shared-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        // What is in it comes later.
        try #"[{"bundleId": "com.example.app", "appAppleId": 123}]"#.write(
            toFile: path, atomically: true, encoding: .utf8)
        func warnings(mode: Int, _ command: CommandName) throws -> [String] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            return try load(command, ["--\(key)", path]).warnings
        }
        #expect(try warnings(mode: 0o644, reader) == [])
        #expect(try warnings(mode: 0o666, .topics) == [])
        for mode in [0o664, 0o646] {
            let told = try warnings(mode: mode, reader)
            #expect(told.count == 1 && told[0].hasPrefix("\(key): \(path): "), "\(told)")
            #expect(told.first?.contains("chmod go-w \(path)") == true, "\(told)")
        }
    }

    @Test(arguments: [
        ("--kafka.consumer.isolation.level=read_uncommitted", "kafka.isolation.level cannot be set: readers must see"),
        ("--kafka.bootstrap.server=a:9092", "is unknown to librdkafka"),
        ("--kafka.bootstrap.server=a:9092", "the nearest is kafka.bootstrap.servers"),
        ("--kafka.linger.ms=soon", "kafka.linger.ms has an invalid value"),
    ])
    func `tells a wrong property of librdkafka with the place where it was given`(_ flag: String, _ words: String)
        throws
    {
        let told = faults(.topics, [flag])
        #expect(told.count == 1)
        #expect(told.first?.hasPrefix("flag \(flag.prefix { $0 != "=" }): ") == true)
        #expect(told.first?.contains(words) == true, "\(told)")
    }

    @Test func `reports everything that is wrong at once`() {
        let told = faults(
            .check,
            ["--partitions=0", "--ingest.allow=17.0.0.1/8", "--apps=/nonexistent", "--unknown=1", "--kafka.a=b"])
        #expect(told.count == 5)
        #expect(told.contains("apps: cannot read /nonexistent: No such file or directory"))
    }
}

@Suite struct `A value of the configuration` {
    @Test(arguments: [
        "--topic.prefix=a/b", "--topic.prefix=", "--environment=Production", "--partitions=0", "--partitions=10001",
        "--partitions=+1 ", "--topics.replication.factor=0", "--ingest.listen=:8443", "--ingest.listen=localhost:8443",
        "--ingest.listen=0.0.0.0:65536", "--ingest.listen=::1:80", "--ingest.allow=any,17.0.0.0/8",
        "--ingest.allow=17.0.0.0/33", "--ingest.trusted.proxies=10.0.0.0/-1", "--ingest.max.body.bytes=524289",
        "--ingest.plaintext=yes", "--verify.ocsp=on", "--log.format=xml", "--log.level=loud", "--worker.slot=-1",
        "--worker.slot=+1", "--partitions=+1", "--churn.zone=Europe/Nowhere",
        "--apps=file:a", "--verify.roots=file:a",
        "--worker.slot=first", "--churn.zone=../etc/passwd", "--churn.zone=/etc", "--api.token=two words",
        "--api.token=fifteen-letters", "--api.token=sixteen-letters-1,short", "--api.token=sixteen-letters-1,",
        "--api.max.behind.ms=999", "--environment=all",
        "--consumption.wait.ms=43200000", "--apple.api.production=api.storekit.apple.com",
        "--apple.api.sandbox=https://user@host", "--apple.api.sandbox=https://",
        "--commit.interval.ms=0",
    ])
    func `is refused outside its range`(_ argument: String) {
        #expect(faults(.check, [argument]).count == 1)
    }

    @Test(arguments: [
        "--topic.prefix=a.b_c-D9", "--partitions=10000", "--ingest.listen=[::]:8443", "--ingest.listen=127.0.0.1:0",
        "--ingest.allow=17.0.0.0/8, 2620:149::/32,::1", "--ingest.trusted.proxies=10.0.0.1", "--worker.slot=9999",
        "--churn.zone=America/Argentina/Buenos_Aires", "--churn.zone=Etc/GMT+5",
        "--apple.api.sandbox=http://127.0.0.1:80/x/",
        "--verify.roots=/etc/passwd, /etc/group",
    ])
    func `is taken within it`(_ argument: String) { #expect(faults(.check, [argument]) == []) }

    @Test func `that names no time zone is told with the reason`() {
        #expect(
            faults(.check, ["--churn.zone=Europe/Nowhere"]) == [
                "flag --churn.zone: churn.zone: no time zone is called \"Europe/Nowhere\": cannot read "
                    + "/usr/share/zoneinfo/Europe/Nowhere: No such file or directory; use a name such as Europe/Berlin, and "
                    + "install the package tzdata if it is missing"
            ])
        // The file exists, and is not a zone.
        let told = faults(.check, ["--churn.zone=leapseconds"])
        #expect(told.count == 1 && told.first?.contains("it is not a TZif file") == true, "\(told)")
    }

    @Test(arguments: ["verify.roots", "consumption.policy", "ingest.tls.certificate"])
    func `that names a file that is not there is told by check, and by nobody who does not need it`(_ key: String) {
        let told = faults(.check, ["--\(key)=/nonexistent"])
        #expect(told.contains("flag --\(key): \(key): cannot read /nonexistent: No such file or directory"), "\(told)")
        #expect(faults(.topics, ["--\(key)=/nonexistent"]) == [])
        let reader = SettingTable.definitions.first { $0.key == key }?.readers.first.flatMap(
            CommandName.init(rawValue:))
        #expect(reader.map { faults($0, ["--\(key)=/nonexistent"]) }?.contains { $0.contains("cannot read") } == true)
    }

    /// Giving the content of a file instead of its path is an easy mistake, and the content may be a private key.
    @Test(arguments: [
        "kafka.ssl.key.location", "kafka.producer.ssl.ca.location", "ingest.tls.key", "apps", "verify.roots",
    ])
    func `with a key in the place of its path is not repeated`(_ key: String) throws {
        let path = FileManager.default.temporaryDirectory.path + "/perennial-\(UUID().uuidString)"
        let pem = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----"
        try Data(pem.utf8).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        for value in ["file:\(path)", pem] {
            let told = faults(.check, ["--\(key)=\(value)"]).filter { !$0.contains("set both or none") }
            #expect(told.count == 1)
            #expect(!told.joined().contains("hunter2") && !told.joined().contains("BEGIN"), "\(told)")
        }
    }

    @Test func `with a password in it is not repeated`() {
        let told = faults(.check, ["--apple.api.sandbox=https://user:hunter2@host"])
        #expect(told.count == 1)
        #expect(!told.joined().contains("hunter2"))
    }
}

@Suite struct `Settings that do not go together` {
    @Test func `are more copies in sync than there are copies`() {
        let told = faults(.topics, ["--topics.replication.factor=1"])
        #expect(told.count == 1)
        #expect(told.first?.contains("nothing could be written") == true)
        #expect(faults(.topics, ["--topics.replication.factor=1", "--topics.min.insync.replicas=1"]) == [])
    }

    @Test func `are a read API open to others and no token`() {
        #expect(faults(.api, ["--api.listen=0.0.0.0:8080"]).count == 1)
        #expect(faults(.api, ["--api.listen=0.0.0.0:8080", "--api.token=sixteen-letters-1"]) == [])
        #expect(faults(.api, ["--api.listen=[::1]:8080"]) == [])
        #expect(faults(.topics, ["--api.listen=0.0.0.0:8080"]) == [], "not read by this command")
    }

    @Test func `are both environments and a worker of one`() throws {
        let told = faults(.entitlements, ["--environment=both"])
        #expect(told.count == 1 && told.first?.contains("needs one, production or sandbox") == true, "\(told)")
        #expect(faults(.api, ["--environment=both"]) == [] && faults(.topics, ["--environment=both"]) == [])
        #expect(try load(.api).namedEnvironments == [.production, .sandbox])
        #expect(try load(.api, ["--environment=both"]).namedEnvironments == [.production, .sandbox])
        #expect(try load(.api, ["--environment=sandbox"]).namedEnvironments == [.sandbox])
        #expect(try load(.api, ["--environment=sandbox"]).environment == .sandbox)
    }

    @Test func `are half a pair of TLS files, half an API key`() {
        #expect(faults(.check, ["--ingest.tls.key=/etc/passwd"]).count == 1)
        #expect(faults(.check, ["--ingest.tls.key=/etc/passwd", "--ingest.tls.certificate=/etc/passwd"]) == [])
        #expect(faults(.check, ["--apple.key=/etc/passwd", "--apple.key.id=b"]).count == 1)
    }

    @Test func `are not told of a part that is wrong itself`() {
        let key = ["--apple.issuer.id=a", "--apple.key.id=b", "--apple.key=file:/nonexistent"]
        #expect(
            faults(.check, key) == ["flag --apple.key: apple.key: cannot read /nonexistent: No such file or directory"])
    }

    @Test func `are an identifier of Apple that is none, and no key with it`() {
        let told = faults(.check, ["--apple.issuer.id=a b"])
        #expect(told.count == 2)
        #expect(told.first?.contains("letters, digits and dashes") == true)
        #expect(told.last?.hasSuffix("is incomplete: set apple.key.id and apple.key as well") == true)
    }

    @Test func `are ingest and no apps, no certificate`() {
        #expect(faults(.ingest, []).count == 2)
        #expect(faults(.ingest, ["--ingest.plaintext=true"]).count == 1)
    }
}

@Suite struct `Ranges of addresses` {
    @Test func `are compared by their bits`() throws {
        let apple = try AddressRange("17.0.0.0/8")
        for (address, isInside) in [
            ("17.255.1.2", true), ("18.0.0.0", false), ("::ffff:17.1.1.1", true), ("1100::", false),
        ] {
            #expect(apple.contains(try #require(IPAddress(address))) == isInside, "\(address)")
        }
        let odd = try AddressRange("2001:db8:8000::/33")
        #expect(odd.contains(try #require(IPAddress("2001:db8:ffff::1"))))
        #expect(!odd.contains(try #require(IPAddress("2001:db8:7fff::1"))))
        #expect(try AddressRange("0.0.0.0/0").contains(try #require(IPAddress("255.1.1.1"))))
        #expect(AllowedAddresses.any.contains(try #require(IPAddress("::1"))))
    }
}

@Suite struct `A worker's slot` {
    @Test(
        arguments: [
            ("perennial-entitlements-2", 2), ("worker-07", 7), ("web-0", 0), ("worker-9999", 9999),
            // Random host names, or none: a container's id, a pod of a Deployment, a machine with only an address.
            ("host07", nil), ("3f2a91b8c604", nil), ("worker-5d4f9c-x7k21", nil), ("ip-10-0-0-123456789", nil),
            ("web", nil), ("12", nil), ("-3", nil), ("web-", nil), ("web-3.example", nil), ("", nil),
        ] as [(String, Int?)])
    func `is the number behind the last dash of the host name`(_ host: String, _ slot: Int?) {
        #expect(WorkerSlot.auto.number(hostName: host) == slot)
        #expect(WorkerSlot.fixed(5).number(hostName: host) == 5)
    }
}
