// The simulated App Store, and what ingest would write for its notifications.

import AppStore
public import Contract
import Crypto
import Records
public import Simulation

/// Everything that one store publishes, as records of `notifications`.
public final class StoreLog {
    public struct Arrival {
        /// When ingest accepts it: the timestamp of the record.
        public var at: Int64
        public let notification: SimulatedNotification

        public init(at: Int64, notification: SimulatedNotification) {
            self.at = at
            self.notification = notification
        }
    }

    public struct Record {
        public let key: [UInt8]
        public let value: [UInt8]
        public let timestamp: Int64
    }

    public static let apps = [
        SimulatedApp(bundleId: "com.example.reader", appAppleId: 1_500_000_001),
        SimulatedApp(bundleId: "com.example.player", appAppleId: 1_500_000_002, graceDays: 28),
    ]
    /// 2026-01-01.
    public static let start: Int64 = 1_767_225_600_000
    public static let minute: Int64 = 60_000
    public static let hour = 60 * minute
    public static let day = 24 * hour

    private static let authority = try! SimulatedAuthority(seed: 5)

    public let simulation: Simulation
    public let environment: Contract.Environment
    private let verifier: Verifier

    /// All stories equally often.
    /// - Parameters:
    ///   - arrival: how long subscribers keep joining, evenly.
    ///   - after: how long the stories continue after that.
    ///   - refundsPerMille: how many of a thousand subscribers get the stories of refund requests.
    public init(
        seed: UInt64, subscribers: Int, arrival: Int64, after: Int64, sandbox: Bool = false,
        stories: [Story] = Story.allCases, refundsPerMille: Int = 0
    ) throws {
        var configuration = Simulation.Configuration(
            seed: seed, subscribers: subscribers, apps: Self.apps, start: Self.start,
            end: Self.start + arrival + after)
        configuration.lastArrival = Self.start + arrival
        configuration.sandboxPerMille = sandbox ? 1000 : 0
        configuration.refundsPerMille = refundsPerMille
        configuration.weights = Dictionary(uniqueKeysWithValues: stories.map { ($0, 1) })
        simulation = try Simulation(configuration)
        environment = sandbox ? .sandbox : .production
        verifier = Verifier(
            VerificationPolicy(
                anchors: TrustAnchors([Self.authority.root]), apps: Self.apps.map(\.contractApp)))
    }

    public var end: Int64 { simulation.configuration.end }

    /// The default leeway of the environment.
    public var leeway: Int64 { environment == .sandbox ? Self.minute : Self.hour }

    public var truth: [[UInt8]] {
        (0..<simulation.configuration.subscribers).flatMap { simulation.truth(of: $0).lines }
    }

    /// In order, each once, at once.
    public var punctual: [Arrival] { simulation.notifications.map { Arrival(at: $0.at, notification: $0) } }

    /// Disturbed as the simulator can; nothing comes after the end, when the judge reads.
    public func disturbed(by configuration: Delivery.Configuration) -> [Arrival] {
        Delivery(simulation.notifications, configuration).map {
            Arrival(at: min($0.at, end), notification: $0.notification)
        }
    }

    public func record(of arrival: Arrival) throws -> Record {
        let notification = try verified(arrival.notification)
        return Record(
            key: Array(notification.key.utf8),
            value: NotificationRecord.value(notification, receivedDate: arrival.at, source: .push),
            timestamp: arrival.at)
    }

    private func verified(_ notification: SimulatedNotification) throws -> VerifiedNotification {
        // Signing and verifying cost more than all else. So only the first notification of each subscriber, and those without a
        // purchase, are signed and verified.
        guard let transaction = notification.transaction, notification.index > 0 else {
            return try verifier.notification(
                notification.signedPayload(by: Self.authority), now: notification.at)
        }
        return VerifiedNotification(
            environment: notification.environment, notificationUUID: notification.notificationUUID,
            notificationType: notification.notificationType, subtype: notification.subtype,
            signedDate: notification.at, bundleId: notification.bundleId, appAppleId: nil, bundleVersion: nil,
            status: notification.status.map(Int64.init),
            consumptionRequestReason: notification.consumptionRequestReason,
            content: .data(transaction: transaction, renewalInfo: notification.renewalInfo), key: notification.key,
            sha256: SHA256.digest(transaction.span), leafSerial: "1", flags: [])
    }
}
