// Distinct notifications of the usual size and kind, for measurements.

public import Contract
public import Crypto
import Simulation

/// Notifications of the simulated store, each with a transaction and a renewal info: three signatures, about 19.5 KB.
public struct NotificationFixture: Sendable {
    /// The root for `verify.roots`.
    public let root: Certificate
    public let rootPEM: [UInt8]
    public let app: App
    public static let bundleId = "com.example.app"
    public static let appAppleId: Int64 = 1_234_567_890
    /// Signed payloads, all from production.
    public let payloads: [[UInt8]]
    /// The transactions in `payloads`, signed separately, as devices have them.
    public let transactions: [[UInt8]]

    /// A past year, so that no payload is dated ahead of a clock.
    private static let start: Int64 = 1_735_689_600_000
    private static let year: Int64 = 366 * 86_400_000

    public init(count: Int) throws {
        let authority = try SimulatedAuthority(seed: 1)
        let app = SimulatedApp(bundleId: Self.bundleId, appAppleId: Self.appAppleId)
        // Each subscriber has notifications of several periods.
        var configuration = Simulation.Configuration(
            seed: 1, subscribers: count, apps: [app], start: Self.start, end: Self.start + Self.year)
        configuration.weights = [.steady: 6, .trialToPaid: 2, .cancelled: 1, .graceRecovered: 1]
        let notifications = Array(
            try Simulation(configuration).notifications.lazy
                .filter { $0.transaction != nil && $0.renewalInfo != nil }.prefix(count))
        payloads = notifications.map { $0.signedPayload(by: authority) }
        transactions = notifications.compactMap { $0.transaction.map(authority.sign) }
        root = authority.root
        rootPEM = authority.rootPEM
        self.app = app.contractApp
    }

    /// The content of the file for `apps`.
    public var appsFile: String { #"[{"bundleId":"\#(Self.bundleId)","appAppleId":\#(Self.appAppleId)}]"# }

    /// The payloads in the form that Apple posts.
    public var bodies: Bodies {
        var bodies = Bodies()
        for payload in payloads { bodies.append(Self.body(payload)) }
        return bodies
    }

    /// - Parameter more: additional members, beginning with a comma.
    public static func body(_ payload: [UInt8], more: String = "") -> [UInt8] {
        Array(#"{"signedPayload":""#.utf8) + payload + Array(#""\#(more)}"#.utf8)
    }

    public var averageBytes: Int { payloads.reduce(0) { $0 + $1.count } / payloads.count }
}
