import JSON
import Simulation

let app = SimulatedApp(bundleId: "com.example.reader", appAppleId: 1_500_000_001)
let otherApp = SimulatedApp(bundleId: "com.example.player", appAppleId: 1_500_000_002, graceDays: 28)

/// 2026-01-01.
let start: Int64 = 1_767_225_600_000
let day: Int64 = 86_400_000
let minute: Int64 = 60_000

/// Three years, and all subscribers join in the first month: every story has time to end.
func configuration(seed: UInt64 = 1, subscribers: Int = 100) -> Simulation.Configuration {
    var configuration = Simulation.Configuration(
        seed: seed, subscribers: subscribers, apps: [app, otherApp], start: start, end: start + 3 * 366 * day)
    configuration.lastArrival = start + 30 * day
    return configuration
}

/// A simulation in which all subscribers have the same story.
func simulation(
    of story: Story, seed: UInt64 = 1, subscribers: Int = 5, sandbox: Bool = false
) throws -> Simulation {
    var configuration = configuration(seed: seed, subscribers: subscribers)
    configuration.weights = [story: 1]
    configuration.sandboxPerMille = sandbox ? 1000 : 0
    return try Simulation(configuration)
}

extension SimulatedNotification {
    /// "DID_RENEW/BILLING_RECOVERY".
    var kind: String { notificationType + (subtype.map { "/\($0)" } ?? "") }

    var transactionJSON: JSONValue? { transaction.flatMap { try? JSONValue.read($0) } }
    var renewalJSON: JSONValue? { renewalInfo.flatMap { try? JSONValue.read($0) } }
}

extension Array where Element: Equatable {
    /// Whether the others occur in it in this order, with anything between them.
    func holds(inOrder others: [Element]) -> Bool {
        var rest = self[...]
        for other in others {
            guard let place = rest.firstIndex(of: other) else { return false }
            rest = rest[(place + 1)...]
        }
        return true
    }
}
