import Contract
import Foundation
import Log
import MemoryLog
import RenewalsExample
import Runtime
import Testing
import WorkerTestKit

@Suite struct `The example of a consumer` {
    private static let day: Int64 = 86_400_000

    private func makeSimulation() throws -> WorkerSimulation {
        let names = Names(prefix: try #require(TopicPrefix("appstore")), environment: .production)
        return try WorkerSimulation(Renewals(names, partitions: 3), processes: 1)
    }

    private func feed(
        _ simulation: WorkerSimulation, _ type: String, id: String, product: String, bought: Int64
    ) throws {
        let key = Array(id.utf8)
        try simulation.feed(
            partition: Partitioner.partition(of: key, count: 3), key: key,
            value: Array(
                #"{"v":1,"notificationType":"\#(type)","transaction":{"productId":"\#(product)","purchaseDate":\#(bought)}}"#
                    .utf8),
            headers: [RecordHeader("schema", "notification/1")])
    }

    /// The last value of every cell, summed over partitions.
    private func cells(_ simulation: WorkerSimulation) throws -> [String: Int] {
        var last: [String: Int] = [:]
        for seen in try simulation.read("appstore.production.renewals") {
            let digits = try #require(seen.valueText.split(separator: ":").last).dropLast()
            let count: Int = try #require(Int(digits))
            last["\(seen.partition) \(seen.keyText)"] = count
        }
        var sums: [String: Int] = [:]
        for (place, count) in last { sums[String(place.split(separator: " ")[1]), default: 0] += count }
        return sums
    }

    @Test func `counts each renewal once, however often its notification comes and its process dies`() throws {
        let simulation = try makeSimulation()
        let process = simulation.processes[0]
        simulation.start(process)
        let today = simulation.clock.now / Self.day
        for round in 0..<3 {
            for subscriber in 0..<20 {
                for renewal in 0...2 {
                    try feed(
                        simulation, "DID_RENEW", id: "id-\(subscriber)",
                        product: subscriber % 2 == 0 ? "gold" : "plain",
                        bought: (today + Int64(renewal)) * Self.day + 1)
                }
                try feed(simulation, "EXPIRED", id: "id-\(subscriber)", product: "gold", bought: 1)
            }
            simulation.step(process)
            if round == 1 {
                simulation.crash(process)
                simulation.loseDisk(of: process)
                simulation.start(process)
            }
        }
        #expect(try simulation.runToEnd())
        var expected: [String: Int] = [:]
        for renewal in 0...2 {
            for product in ["gold", "plain"] { expected["\(product)|\(today + Int64(renewal))"] = 10 }
        }
        #expect(try cells(simulation) == expected)
    }

    @Test func `forgets who has not renewed for 400 days, by the clock of the log`() throws {
        let simulation = try makeSimulation()
        simulation.start(simulation.processes[0])
        let bought = simulation.clock.now
        func renew() throws { try feed(simulation, "DID_RENEW", id: "id", product: "gold", bought: bought) }
        try renew()
        try simulation.tick(at: bought + 400 * Self.day - 1)
        try renew()
        #expect(try simulation.runToEnd())
        #expect(try cells(simulation).values.reduce(0, +) == 1)
        try simulation.tick(at: bought + 400 * Self.day)
        try renew()
        #expect(try simulation.runToEnd())
        #expect(try cells(simulation).values.reduce(0, +) == 2)
    }

    @Test func `tells of a renewal that it cannot read as a dead letter`() throws {
        let simulation = try makeSimulation()
        simulation.start(simulation.processes[0])
        let key = Array("id".utf8)
        try simulation.feed(
            partition: Partitioner.partition(of: key, count: 3), key: key, value: Array("{".utf8),
            headers: [RecordHeader("schema", "notification/1")])
        #expect(try simulation.runToEnd())
        let letters = try simulation.read(simulation.processor.definition.deadLetters)
        #expect(letters.map { $0.header("reason") } == ["json"])
        #expect(letters.map(\.valueText) == ["{"])
    }
}

@Suite struct `The tutorial about a consumer` {
    private func text(_ path: String) throws -> String {
        let here = URL(filePath: #filePath).deletingLastPathComponent()
        return try String(contentsOf: here.appending(path: path), encoding: .utf8)
    }

    @Test func `shows the example and its program as they are compiled`() throws {
        let page = try text("../../docs/tutorial/your-own-consumer.md")
        let example = try text("../Example/Renewals.swift")
        #expect(page.contains("```swift\n\(example)```"))
        // On the page both files are in one target.
        let program = try text("../Programs/renewals-worker/main.swift")
            .replacing("import RenewalsExample\n", with: "")
        #expect(page.contains("```swift\n\(program)```"))
    }
}
