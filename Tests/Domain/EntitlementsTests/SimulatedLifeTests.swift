import Contract
import Simulation
import Testing

import struct MakeBelieve.Chance

@testable import Entitlements

@Suite struct `Ten thousand lives of the simulator` {
    private static let parts = 40
    private static let perPart = 250
    /// Not all of them buy something, and nothing is known about a subscription that was moved elsewhere.
    private static let subscribers = 400

    /// Every story equally often, some cut short, some in sandbox.
    private func simulation(_ part: Int) throws -> Simulation {
        let start = date(2026, 1, 1)
        let months = [1, 2, 4, 15, 2, 3, 6, 24][part % 8]
        var configuration = Simulation.Configuration(
            seed: UInt64(1 + part), subscribers: Self.subscribers,
            apps: [
                SimulatedApp(bundleId: "com.example.reader", appAppleId: 1, graceDays: 16),
                SimulatedApp(bundleId: "com.example.player", appAppleId: 2, graceDays: 28),
            ], start: start, end: start + Int64(months) * 30 * 24 * hour)
        configuration.lastArrival = start + 30 * 24 * hour
        configuration.sandboxPerMille = 150
        configuration.weights = Dictionary(uniqueKeysWithValues: Story.allCases.map { ($0, 1) })
        return try Simulation(configuration)
    }

    @Test(arguments: 0..<parts)
    func `are answered as they were, at every instant and in the end, however they were told`(_ part: Int) throws {
        let simulation = try simulation(part)
        let rules = Dictionary(
            uniqueKeysWithValues: [Environment.production, .sandbox].map { ($0, SimulatedLife.Rules(simulation, $0)) })
        var chance = Chance(seed: UInt64(part))
        var wrong: [String] = []
        var judged = 0
        var subscribers = (0..<Self.subscribers).shuffled(using: &chance)[...]
        while judged < Self.perPart, let subscriber = subscribers.popFirst() {
            for life in try SimulatedLife.all(of: subscriber, in: simulation, rules) where judged < Self.perPart {
                if !life.isSame(shuffledBy: &chance) { wrong.append("\(life.seed): order matters") }
                guard life.truth.state != nil else { continue }
                judged += 1
                if let instant = life.firstFalseAnswer() { wrong.append(instant) }
                if let end = try life.falseEnd() { wrong.append(end) }
            }
        }
        #expect(wrong.isEmpty, "\(wrong.count) of \(judged): \(wrong.prefix(3).joined(separator: "\n"))")
        #expect(judged == Self.perPart && Self.parts * Self.perPart == 10_000)
    }
}
