import Foundation
import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `perennial usage put on Kafka` {
        private func put(_ installation: Installation, _ arguments: [String], stdin: String = "") async throws
            -> ProgramResult
        {
            try await run(
                productPath("perennial"), ["usage", "put"] + arguments + installation.settings, environment: .only([:]),
                workingDirectory: "/", stdin: stdin)
        }

        private static func row(_ id: Int, _ more: String = "") -> String {
            #"{"v":1,"originalTransactionId":"\#(id)","consented":true\#(more),"kept":[1.50]}"#
        }

        @Test func `writes what POST slash usage writes: same place, same headers, same bytes`() async throws {
            let installation = try await Installation.make("usage", try await Broker.shared(), partitions: 7)
            let scratch = try ScratchDirectory("usage")
            let rows = (0..<1_500).map { Self.row($0, $0 % 3 == 0 ? #","environment":"Sandbox""# : "") }
            let path = try scratch.write(rows.joined(separator: "\n"), to: "usage.jsonl")
            let before = WallClock.milliseconds()
            let file = try await put(installation, [path])
            #expect(file.code == 0, "\(file.words)")
            try await postSomeRows(of: rows, to: installation, scratch)

            for (environment, isWanted) in [("sandbox", { $0 % 3 == 0 }), ("production", { $0 % 3 != 0 })]
                as [(String, (Int) -> Bool)]
            {
                let records = try await installation.broker.readWhole(installation.topic("usage", environment))
                var values: [String: [WholeRecord]] = [:]
                for record in records {
                    let key = try #require(record.key)
                    #expect(record.partition == Partitioner.partition(of: key, count: 7))
                    #expect((before...WallClock.milliseconds()).contains(try #require(record.timestamp)))
                    values[String(decoding: record.value, as: UTF8.self), default: []].append(record)
                    #expect(record.header("schema") == "usage/1" && record.header("app") == "perennial/0.2.0")
                }
                #expect(Set(values.keys) == Set(rows.enumerated().filter { isWanted($0.offset) }.map(\.element)))
                // Rows that were also posted to ingest are there twice.
                for (row, copies) in values where copies.count == 2 {
                    #expect(copies[0].key == copies[1].key && copies[0].partition == copies[1].partition, "\(row)")
                    #expect(copies[0].headers == copies[1].headers)
                }
                #expect(values.values.count { $0.count == 2 } >= 3, "ingest has written some of them, too")
            }
        }

        private func postSomeRows(of rows: [String], to installation: Installation, _ scratch: ScratchDirectory)
            async throws
        {
            let apps = try scratch.write(#"[{"bundleId": "com.example.app", "appAppleId": 1}]"#, to: "apps.json")
            let ingest = try ServiceProcess(
                ["ingest", "--ingest.plaintext", "true", "--ingest.listen", "127.0.0.1:0", "--apps", apps]
                    + ["--usage.token", "a-token-of-this-test"] + installation.settings)
            try await ingest.waitUntilReady()
            let port = try await ingest.port("ingest listens")
            let request = HTTPClient.Request(
                "POST", "http://127.0.0.1:\(port)/usage",
                headers: [
                    .init("Content-Type", "application/json"), .init("Authorization", "Bearer a-token-of-this-test"),
                ], body: Array("[\(rows.prefix(12).joined(separator: ","))]".utf8))
            let status = try await blocking {
                let client = try HTTPClient()
                defer { client.close() }
                return try client.answer(to: request).status
            }
            #expect(status == 202)
            try await ingest.stop()
        }

        @Test func `writes one record, from options, as JSON and from standard input; and nothing of a wrong file`()
            async throws
        {
            let installation = try await Installation.make("usage", try await Broker.shared(), partitions: 3)
            let options = try await put(
                installation, ["--originalTransactionId", "7", "--consented", "true", "--consumptionPercentage", "5"])
            #expect(options.code == 0, "\(options.words)")
            #expect(try await put(installation, [Self.row(8), "--environment", "sandbox"]).code == 0)
            #expect(try await put(installation, ["-"], stdin: "\(Self.row(9))\n\(Self.row(10))").code == 0)
            let wrong = try await put(installation, ["-"], stdin: "\(Self.row(11))\n\(Self.row(12))\n{}\n")
            #expect(wrong.code == 2, "\(wrong.words)")
            let skipped = try await put(installation, ["-", "--skip-wrong"], stdin: "{}\n\(Self.row(13))\n")
            #expect(skipped.code == 0, "\(skipped.words)")
            func ids(_ environment: String) async throws -> [String] {
                try await installation.broker.readWhole(installation.topic("usage", environment))
                    .map { String(decoding: $0.key ?? [], as: UTF8.self) }.sorted()
            }
            #expect(try await ids("production") == ["10", "13", "7", "9"])
            #expect(try await ids("sandbox") == ["8"])
            let first = try #require(
                try await installation.broker.readWhole(installation.topic("usage")).first { $0.key == [0x37] })
            #expect(
                first.value
                    == Array(#"{"v":1,"originalTransactionId":"7","consented":true,"consumptionPercentage":5}"#.utf8))
        }
    }
}
