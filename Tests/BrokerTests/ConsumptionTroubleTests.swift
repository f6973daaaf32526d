import Foundation
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `Answers to refund requests in trouble` {
        /// Answers arrive at the next retry: the pauses between retries double, and those of an app whose key is refused are a
        /// minute.
        private static let mended: Duration = .seconds(180)

        private static func story(_ seed: Int, hasGate: Bool = false) -> RefundScene.Story {
            RefundScene.Story(seed: seed, subscribers: 400, hours: 3, ahead: "1s", faults: 0, hasGate: hasGate)
        }

        private static func scene(_ story: RefundScene.Story) async throws -> (RefundScene, Installation) {
            let installation = try await Installation.make("troubles", try await Broker.shared(), partitions: 4)
            return (try await RefundScene(installation, story, replicas: 0), installation)
        }

        /// The value of `perennial_consumption_sender_troubles`.
        private static func troubles(_ cause: String, _ worker: ServiceProcess) async throws -> Double {
            try await worker.metric("perennial_consumption_sender_troubles{cause=\"\(cause)\"}") ?? -1
        }

        /// Log lines that report a trouble in these words.
        private static func tellings(_ words: String, _ worker: ServiceProcess) -> [Substring] {
            worker.log.split(separator: "\n").filter {
                $0.contains("answers to refund requests do not reach Apple") && $0.contains(words)
            }
        }

        /// The body of `/readyz`, the log and the metric agree.
        private static func waitUntilTold(_ cause: String, _ words: String, by worker: ServiceProcess) async throws {
            try await waitUntil("\(cause) is told", within: .seconds(120)) {
                guard try await worker.reasons().contains(words) else { return false }
                return try await troubles(cause, worker) > 0
            }
        }

        private static func waitUntilMended(_ cause: String, _ words: String, by worker: ServiceProcess) async throws {
            try await waitUntil("\(cause) is over", within: mended) {
                guard try await !worker.reasons().contains(words) else { return false }
                return try await troubles(cause, worker) == 0
            }
        }

        // MARK: The key

        @Test
        func `are decided while Apple does not take the key, which is told once, and all sent with the right one`()
            async throws
        {
            let (scene, _) = try await Self.scene(Self.story(31))
            let words = "(401)"
            let worker = try scene.addWorker(instead: ["--apple.key": try await scene.makeForeignKey()])
            try await Self.waitUntilTold("unauthorized", words, by: worker)
            try await scene.waitUntilTold()
            try await scene.waitUntilDecided()
            let tellings = Self.tellings(words, worker)
            let apps = Set(tellings.compactMap { $0.firstMatch(of: #/the key for ([a-z.]+)/#)?.1 })
            // Two apps have requests: the trouble of each is reported once, however often it was retried.
            #expect(tellings.count == apps.count && (1...2).contains(apps.count), "\(tellings)")
            #expect(try await Self.troubles("unauthorized", worker) == Double(apps.count))
            #expect(try scene.journal().allSatisfy { !$0.isTaken && $0.status == 401 })
            let histories = try await scene.histories().values
            #expect(histories.allSatisfy { $0.finalCount == 0 }, "nothing is given up")
            #expect(!worker.log.contains("BEGIN"))

            try await scene.restart(0)
            try await scene.waitUntilSettled(within: Self.mended)
            #expect(try await Self.troubles("unauthorized", scene.workers[0]) == 0)
            try await scene.expectAllSent()
            try await scene.end()
        }

        // MARK: The clock

        @Test func `of a host whose clock is ten minutes ahead wait, which is told, and are sent when it is right`()
            async throws
        {
            let (scene, _) = try await Self.scene(Self.story(32))
            let host = try ShiftedHost(seconds: 600)
            let words = "this host's clock is"
            let worker = try scene.addWorker(environment: host.environment)
            try await Self.waitUntilTold("clock", words, by: worker)
            #expect(try await worker.reasons().contains("ahead of Apple's"))
            #expect(Self.tellings(words, worker).count == 1)
            let ahead = try #require(try await worker.metric("perennial_consumption_clock_ahead_seconds"))
            #expect((590...610).contains(ahead))
            try await scene.waitUntilTold()
            try await scene.waitUntilDecided()
            #expect(try scene.journal().allSatisfy { !$0.isTaken })

            host.shift(by: 0)
            try await Self.waitUntilMended("clock", words, by: worker)
            // The next retry of a request that was tried meanwhile was set by the wrong clock: up to ten minutes late, but before
            // the deadline.
            let isTold = try await scene.histories().values.filter { $0.kinds.contains("retrying") }.map(
                \.transactionId)
            let tried = Set(isTold)
            let must = try scene.truth().filter { $0.answer == "must" }
            #expect(tried.count < must.count / 2, "\(tried.count) of \(must.count)")
            try await waitUntil("requests that were not tried before are sent", within: Self.mended) {
                let histories = try await scene.histories()
                return must.allSatisfy {
                    tried.contains($0.transactionId) || histories[$0.uuid]?.kinds.contains("sent") == true
                }
            }
            let latest = try await scene.nextAttempts().values.max() ?? 0
            #expect(latest < WallClock.milliseconds() + 11 * 60_000)
            #expect(must.allSatisfy { latest < $0.deadline - 60_000 })
            try await scene.end()
        }

        // MARK: The connection

        @Test func `wait while nobody listens at Apple's address, which is told, and are all sent when somebody does`()
            async throws
        {
            let (scene, _) = try await Self.scene(Self.story(33, hasGate: true))
            let words = "Apple's API does not answer"
            let worker = try scene.addWorker()
            try await Self.waitUntilTold("unreachable", words, by: worker)
            try await scene.waitUntilTold()
            try await scene.waitUntilDecided()
            let tellings = Self.tellings(words, worker)
            #expect((1...2).contains(tellings.count), "not once for each app: \(tellings)")
            #expect(try scene.journal().isEmpty)
            #expect(try await scene.histories().values.contains { $0.kinds.contains("retrying") })

            try await #require(scene.gate).open()
            try await scene.waitUntilSettled(within: Self.mended)
            try await Self.waitUntilMended("unreachable", words, by: worker)
            try await scene.expectAllSent()
            try await scene.end()
        }

        @Test
        func `are not sent when consent is withdrawn before they get through, and are, as decided, when it is given`()
            async throws
        {
            let (scene, _) = try await Self.scene(Self.story(34, hasGate: true))
            try scene.addWorker()
            try await scene.waitUntilTold()
            try await scene.waitUntilDecided()
            let truth = try scene.truth()
            let request = try #require(
                truth.first { one in
                    one.answer == "must" && truth.count { $0.originalTransactionId == one.originalTransactionId } == 1
                })
            func history() async throws -> RequestHistory {
                try await scene.histories()[request.uuid] ?? RequestHistory()
            }
            try await waitUntil("it was tried") { try await history().kinds.contains("retrying") }
            try await scene.tell(request, consented: false)
            try await waitUntil("it is withheld") {
                let history = try await history()
                return zip(history.kinds, history.details).contains { $0 == "withheld" && $1 == "no_consent" }
            }
            try await #require(scene.gate).open()
            try await scene.waitUntilSettled(within: Self.mended)
            #expect(try scene.journal().count { $0.isTaken } > 20)
            #expect(try scene.journal().allSatisfy { $0.transactionId != request.transactionId })
            #expect(try await history().kinds.allSatisfy { $0 != "sent" })

            try await scene.tell(request, consented: true)
            try await waitUntil("it is sent") { try await history().kinds.contains("sent") }
            let bodies = try scene.journal().filter { $0.transactionId == request.transactionId }.map(\.body)
            let decided = try await history().bodies
            #expect(bodies.count == 1 && decided == Set(bodies), "\(bodies), decided: \(decided)")
            #expect(try await history().kinds.count { $0 == "decided" } == 2)
            try await scene.expectAllSent()
            try await scene.end()
        }

        // MARK: Garbage

        @Test func `are decided and sent in time though a hundred thousand rows of usage are garbage`() async throws {
            let installation = try await Installation.make("garbage", try await Broker.shared(), partitions: 4)
            let garbage = UsageGarbage(count: 100_000, topic: installation.topic("usage"), partitions: 4)
            let first = try await garbage.write(0..<60_000, installation.broker.properties)
            let scene = try await RefundScene(installation, Self.story(35), replicas: 1)
            let second = try await garbage.write(60_000..<100_000, installation.broker.properties)
            try await scene.waitUntilTold()
            let posted = try await scene.lastPost()
            try await scene.waitUntilSettled(within: Self.mended)
            try await scene.expectAllSent()
            let sent = try scene.lastSent()
            #expect(sent - posted < 120_000, "\(sent - posted) ms from the last post to the last answer")

            // Every row is accounted for.
            let strays = first.strays + second.strays
            let worker = scene.workers[0]
            try await waitUntil("all of the garbage is processed", within: Self.mended) {
                let (rerouted, letters) = try await (
                    worker.sum("perennial_records_rerouted_total"), worker.sum("perennial_dead_letters_total")
                )
                return rerouted >= Double(strays) && letters >= Double(100_000 - strays)
            }
            let home = try await scene.records("usage").filter { $0.header("rerouted") != nil }
            #expect(home.count == strays && strays > 10_000)
            #expect(home.allSatisfy { $0.partition == Partitioner.partition(of: $0.key ?? [], count: 4) })
            let letters = try await scene.records("consumption.dead-letters")
            #expect(letters.count == 100_000 - strays)
            let reasons = Set(letters.compactMap { $0.header("reason") })
            #expect(reasons.isSuperset(of: ["json", "usage", "schema"]), "\(reasons)")
            print("garbage: \(sent - posted) ms from the last post to the last answer; reasons \(reasons.sorted())")
            try await scene.end()
        }
    }
}

/// One row of every kind that a backend should not write but might.
private struct UsageGarbage: Sendable {
    struct Written: Sendable {
        /// Valid rows in the wrong partition.
        var strays = 0
    }

    /// Rows larger than a transaction of the worker should be; only a few, so that the disk has room.
    private static let hugeBytes = 600_000
    private static let hugeEvery = 4_000

    let count: Int
    let topic: String
    let partitions: Int32

    private func row(_ number: Int) -> (value: [UInt8]?, headers: [RecordHeader], isStray: Bool) {
        // Rows of a purchase that the simulator does not know.
        let id = "9\(number)"
        if number % Self.hugeEvery == 0 {
            return (Array(repeating: UInt8(ascii: "["), count: Self.hugeBytes), [], false)
        }
        func text(_ text: String) -> ([UInt8]?, [RecordHeader], Bool) { (Array(text.utf8), [], false) }
        switch number % 8 {
        case 0: return text("{\"v\":1,\"originalTransactionId\":\"\(id)\"")
        case 1: return text(#"{"v":1,"originalTransactionId":"\#(id)","consented":"yes"}"#)
        case 2: return text(#"{"v":2,"originalTransactionId":"\#(id)","consented":true}"#)
        case 3:
            let good = Array(#"{"v":1,"originalTransactionId":"\#(id)","consented":true}"#.utf8)
            return (good, [RecordHeader("schema", "usage/2")], false)
        case 4: return ([], [], false)
        case 5: return (nil, [], false)
        case 6: return text(#"["\#(id)"]"#)
        default: return (Array(#"{"v":1,"originalTransactionId":"\#(id)","consented":true}"#.utf8), [], true)
        }
    }

    /// Writes into all partitions, with a client that knows nothing of Perennial.
    func write(_ numbers: Range<Int>, _ properties: ClientProperties) async throws -> Written {
        try await blocking { [self] in
            let producer = try Producer(.init(clientID: "garbage", properties: properties)) { report in
                if report.failure != nil { Issue.record("\(report)") }
            }
            let target = try producer.topic(topic)
            var written = Written()
            for number in numbers {
                let (value, headers, isStray) = row(number)
                let key = Array("9\(number)".utf8)
                let home = Partitioner.partition(of: key, count: partitions)
                if isStray { written.strays += 1 }
                let partition = isStray ? (home + 1) % partitions : Int32(number / 8) % partitions
                while true {
                    do throws(KafkaFault) {
                        try producer.send(
                            to: target, partition: partition, key: isStray ? nil : key.span, value: value?.span,
                            headers: headers)
                        break
                    } catch {
                        guard error.code == .queueFull else { throw error }
                        producer.poll(.milliseconds(10))
                    }
                }
                producer.poll()
            }
            try producer.flush(by: Deadline(after: patience))
            producer.close(by: Deadline(after: patience))
            return written
        }
    }
}
