// Notifications to measure with: distinct, of the usual size, of the usual kind.

public import Contract
public import Crypto
import Simulation

/// Notifications of the make-believe store, each with a transaction and a renewal info: three signatures, about 19.5 KB.
public struct NotificationFixture: Sendable {
    /// What `verify.roots` has to name.
    public let root: Certificate
    public let rootPEM: [UInt8]
    public let app: App
    public static let bundleId = "com.example.app"
    public static let appAppleId: Int64 = 1_234_567_890
    /// Signed payloads, all of production.
    public let payloads: [[UInt8]]
    /// As devices have them: what `payloads` tell of purchases, signed for itself.
    public let transactions: [[UInt8]]

    /// A year that is over: no payload is dated ahead of any clock.
    private static let start: Int64 = 1_735_689_600_000
    private static let year: Int64 = 366 * 86_400_000

    public init(count: Int) throws {
        let authority = try SimulatedAuthority(seed: 1)
        let app = SimulatedApp(bundleId: Self.bundleId, appAppleId: Self.appAppleId)
        // Each tells of more than one period.
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

    /// The file that `apps` names.
    public var appsFile: String { #"[{"bundleId":"\#(Self.bundleId)","appAppleId":\#(Self.appAppleId)}]"# }

    /// The payloads as Apple posts them.
    public var bodies: Bodies {
        var bodies = Bodies()
        for payload in payloads { bodies.append(Self.body(payload)) }
        return bodies
    }

    /// - Parameter more: further members, with their comma before them.
    public static func body(_ payload: [UInt8], more: String = "") -> [UInt8] {
        Array(#"{"signedPayload":""#.utf8) + payload + Array(#""\#(more)}"#.utf8)
    }

    public var averageBytes: Int { payloads.reduce(0) { $0 + $1.count } / payloads.count }
}
