import Crypto
import Foundation
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `Dead letters` {
        /// An installation whose ingest was configured for the wrong app, and so has put every notification into quarantine.
        private struct Quarantine {
            let installation: Installation
            let store: MakeBelieveStore
            let bodies: [[UInt8]]

            static func make() async throws -> Quarantine {
                let installation = try await Installation.make("letters", try await Broker.shared(), partitions: 3)
                let store = try await MakeBelieveStore.open(telling: ["--seed", "3", "--subscribers", "3"])
                let payloads = try store.payloadsByHash().sorted { $0.key < $1.key }.prefix(5).map(\.value)
                let bodies = payloads.map { MakeBelieveStore.body($0) }
                let strange = try store.scratch.write(
                    #"[{"bundleId": "com.example.another", "appAppleId": 1}]"#, to: "another.json")
                let ingest = try ServiceProcess(
                    ["ingest", "--ingest.plaintext", "true", "--ingest.listen", "127.0.0.1:0", "--apps", strange]
                        + ["--verify.roots", store.root] + installation.settings)
                try await ingest.waitUntilReady()
                let port = try await ingest.port("ingest listens")
                for body in bodies {
                    let posted = try await store.post(body: body, to: port)
                    #expect(posted == 200)
                }
                try await ingest.stop()
                return Quarantine(installation: installation, store: store, bodies: bodies)
            }

            func deadLetters(_ arguments: [String]) async throws -> ProgramResult {
                try await run(
                    productPath("perennial"), ["dead-letters"] + arguments + installation.settings,
                    environment: .only([:]), workingDirectory: "/")
            }

            func lines(_ arguments: [String]) async throws -> [[String: Any]] {
                let listed = try await deadLetters(arguments + ["--format", "json"])
                #expect(listed.code == 0, "\(listed.words)")
                return try listed.standardOutput.split(separator: "\n").map { line in
                    try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
                }
            }

            func published() async throws -> [WholeRecord] {
                try await installation.broker.readWhole(installation.topic("notifications"))
                    .filter { $0.header("schema") == "notification/1" }
            }
        }

        @Test func `are listed oldest first, shown by place or key, and redriven as if they had just come`()
            async throws
        {
            let quarantine = try await Quarantine.make()
            let (store, bodies) = (quarantine.store, quarantine.bodies)
            let keys = bodies.map { hexadecimal(SHA256.digest($0.span)) }

            let letters = try await quarantine.lines(["list"])
            #expect(letters.map { $0["key"] as? String } == keys)
            #expect(letters.allSatisfy { $0["reason"] as? String == "wrong_app" })
            #expect(letters.map { $0["bytes"] as? Int } == bodies.map(\.count))
            #expect(
                try await quarantine.lines(["list", "--limit", "2"]).map { $0["key"] as? String } == keys.suffix(2))
            let few = try await quarantine.deadLetters(["list", "--limit", "1"])
            let head = "environment  partition:offset  time  reason  bytes  key\n"
            #expect(
                few.standardError
                    == head + "perennial dead-letters: only the newest are shown; --limit shows more\n")
            #expect(try await quarantine.deadLetters(["list"]).standardError == head)
            #expect(try await quarantine.lines(["list", "--reason", "malformed"]).isEmpty)
            #expect(try await quarantine.lines(["list", "--since", "1h"]).count == bodies.count)
            #expect(try await quarantine.lines(["list", "entitlements"]).isEmpty)

            let place = "\(try #require(letters[0]["partition"])):\(try #require(letters[0]["offset"]))"
            for name in [place, String(keys[0].prefix(12))] {
                let shown = try await quarantine.deadLetters(["show", name])
                #expect(shown.code == 0, "\(shown.words)")
                #expect(shown.standardOutput.contains("reason    wrong_app"))
                #expect(shown.standardOutput.contains(#""notificationType":"#), "the payload is decoded")
                let raw = try await quarantine.deadLetters(["show", name, "--raw"])
                #expect(raw.standardOutput == String(decoding: bodies[0], as: UTF8.self) + "\n")
            }
            #expect(try await quarantine.deadLetters(["show", "0:999999"]).code == 1)

            // The configuration has not changed, so no verdict changes.
            let strange = ["--apps", "\(store.scratch.path)/another.json", "--verify.roots", store.root]
            let same = try await quarantine.lines(["redrive"] + strange)
            #expect(same.first?["hold"] as? Int == 0)
            #expect((same.first?["refused"] as? [String: Int]) == ["wrong_app": bodies.count])
            let dry = try await quarantine.deadLetters(["redrive"] + store.ingestSettings)
            #expect(dry.standardOutput == "wrong_app  verify now: \(bodies.count)  refused again: 0\n")
            #expect(dry.standardError.contains("nothing was written"))
            #expect(try await quarantine.published().isEmpty)

            let applied = try await quarantine.deadLetters(["redrive", "--apply"] + store.ingestSettings)
            #expect(applied.code == 0, "\(applied.words)")
            #expect(applied.standardError.contains("\(bodies.count) notifications are published"))
            let times = Dictionary(
                uniqueKeysWithValues: letters.map { ($0["key"] as? String ?? "", $0["time"] as? Int64 ?? 0) })
            let records = try await quarantine.published()
            #expect(records.count == bodies.count)
            let signed = try await quarantine.installation.broker.readWhole(quarantine.installation.topic("signed"))
            for record in records {
                let json = try #require(try JSONSerialization.jsonObject(with: Data(record.value)) as? [String: Any])
                let archived = try #require(signed.first { $0.header("id") == record.header("id") })
                #expect(archived.key == record.key && archived.partition == record.partition)
                let body = MakeBelieveStore.body(archived.value)
                let first = try #require(times[hexadecimal(SHA256.digest(body.span))], "not what was posted")
                #expect(json["receivedDate"] as? Int64 == first)
                #expect(record.timestamp == first)
                #expect(json["source"] as? String == "push")
            }
        }

        @Test
        func `that were refused as revoked are never redriven, and under hard none is that Apple says nothing of`()
            async throws
        {
            let installation = try await Installation.make("revoked", try await Broker.shared(), partitions: 1)
            let store = try await MakeBelieveStore.open(telling: ["--seed", "3", "--subscribers", "3"])
            let payloads = try store.payloadsByHash().sorted { $0.key < $1.key }.map(\.value)
            // Stored as ingest stores what it refuses. Both bodies verify if revocation is not checked.
            let reasons = ["revoked", "wrong_app"]
            try await blocking {
                let producer = try Producer(
                    .init(clientID: "test", properties: installation.broker.properties)
                ) { _ in }
                let topic = try producer.topic(installation.topic("rejected"))
                for (payload, reason) in zip(payloads, reasons) {
                    let body = MakeBelieveStore.body(payload)
                    try producer.send(
                        to: topic, partition: 0, key: Array(hexadecimal(SHA256.digest(body.span)).utf8).span,
                        value: body.span, headers: [RecordHeader("reason", reason)])
                }
                try producer.flush(by: Deadline(after: patience))
                producer.close(by: Deadline(after: patience))
            }
            try await waitUntil("a topic that was just made can be read", within: patience) {
                try await run(
                    productPath("perennial"), ["dead-letters", "list"] + installation.settings,
                    environment: .only([:]), workingDirectory: "/"
                ).standardOutput.contains("wrong_app")
            }
            // Only the last record of the partition is read, so no record that was read is left out.
            let few = try await run(
                productPath("perennial"), ["dead-letters", "list", "--limit", "1"] + installation.settings,
                environment: .only([:]), workingDirectory: "/")
            #expect(few.standardOutput.split(separator: "\n").count == 1)
            #expect(few.standardError.contains("only the newest are shown"))
            func redrive(_ mode: String) async throws -> ProgramResult {
                try await run(
                    productPath("perennial"),
                    ["dead-letters", "redrive", "--apply", "--verify.ocsp", mode] + store.ingestSettings
                        + installation.settings,
                    // Nothing listens there.
                    environment: .only(["http_proxy": "http://127.0.0.1:1"]), workingDirectory: "/")
            }
            func published() async throws -> Int {
                try await installation.broker.readWhole(installation.topic("notifications")).count
            }
            let hard = try await redrive("hard")
            #expect(hard.code == 3)
            #expect(
                hard.standardOutput == """
                    revoked  verify now: 0  refused again: 1 (revoked 1)
                    wrong_app  verify now: 0  refused again: 1 (no_verdict 1)

                    """)
            #expect(hard.standardError.contains("no verdict for some"), "\(hard.standardError)")
            #expect(try await published() == 0)
            for (count, mode) in ["soft", "off"].enumerated() {
                let outcome = try await redrive(mode)
                #expect(outcome.code == 0, "\(outcome.words)")
                #expect(
                    outcome.standardOutput == """
                        revoked  verify now: 0  refused again: 1 (revoked 1)
                        wrong_app  verify now: 1  refused again: 0

                        """)
                #expect(try await published() == count + 1)
            }
        }

        @Test(arguments: [
            (["list", "--reason", "bad_mood"], "there is no reason \"bad_mood\", only too_large"),
            (["list", "--since", "yesterday"], "--since takes 90m, 2h, 7d"),
            (["show"], "show needs a letter"), (["show", "first"], "a letter is PARTITION:OFFSET"),
            (["redrive"], "apps is not set"), (["show", "churn", "200"], "at least 6 characters of its key"),
            (["list", "--apply"], "--apply belongs to redrive"), (["drop"], "list, show or redrive, not \"drop\""),
            (["list", "--topic.prefix", "nobodys"], "the topic nobodys.production.rejected does not exist"),
        ])
        func `wrongly asked for are answered with what is right and exit code 2`(arguments: [String], words: String)
            async throws
        {
            let broker = try await Broker.shared()
            let outcome = try await run(
                productPath("perennial"),
                ["dead-letters"] + arguments + ["--kafka.bootstrap.servers", broker.bootstrap],
                environment: .only([:]), workingDirectory: "/")
            #expect(outcome.code == 2)
            #expect(outcome.standardError.contains(words), "\(outcome.standardError)")
            #expect(outcome.standardOutput.isEmpty)
        }
    }
}
