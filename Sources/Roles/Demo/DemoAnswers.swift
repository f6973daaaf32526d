// The demo's refund answers: the policy, the simulated App Store Server API, and a client for it.

import AppStoreAPI
import Consumption
import ConsumptionSender
import Contract
import HTTP
import HTTPClient
import Platform
import Runtime
import Service
import Simulation
import Simulator
import Telemetry

/// The API of the store, which listens while the demo runs, and a client for it.
final class DemoAnswers: ServicePart {
    let name = "store-api"
    let policy: RefundPolicy
    private let server: StoreAPIServer
    private let api: AppStoreServerAPI

    /// How long a request waits for usage, in the store's time: the default in production.
    private static let wait: Int64 = 60 * 60_000
    /// For this long after a request the store's time runs fast: then the worker has stopped waiting, and Apple, which takes at
    /// least two hours, has not decided.
    static let calm: Int64 = 90 * 60_000
    /// Apple's limit of requests per second.
    private static let rate = 50

    /// Three rules, so that the demo shows different answers.
    private static let policyText = """
        {
          "version": "demo",
          "rules": [
            {
              "name": "mostly used up",
              "when": {"consumptionPercentage": {"from": 50000}},
              "answer": {"refundPreference": "DECLINE"}
            },
            {
              "name": "first request, bought by mistake",
              "when": {"reason": "UNINTENDED_PURCHASE", "refundsRequested": 1, "daysSincePurchase": {"to": 2}},
              "answer": {"refundPreference": "GRANT_FULL"}
            },
            {"name": "anything else", "when": {}, "answer": {"refundPreference": null}}
          ]
        }
        """

    init(_ store: MakeBelieveStore, listen: ListenAddress, userAgent: String) throws {
        policy = try RefundPolicy.read(Array(Self.policyText.utf8))
        let key = store.apiKey
        let signer = try APIKey(issuerId: key.issuerId, keyId: key.keyId, pem: key.pem)
        server = try StoreAPIServer(StoreAPIServer.Configuration(address: listen), store: store, journal: nil)
        var settings = AppStoreServerAPI.Configuration()
        settings.production = server.production
        settings.sandbox = server.sandbox
        settings.usesProxyOfEnvironment = false
        settings.userAgent = userAgent
        // A token is valid for minutes, which pass too fast in the store's time. So both sides use the real time for tokens.
        api = try AppStoreServerAPI(key: signer, configuration: settings, now: WallClock.milliseconds)
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) {}

    func stop(by deadline: Deadline) {
        api.close()
        server.stop()
    }

    func rules(_ apps: [App]) -> ConsumptionRules { ConsumptionRules(apps: apps, policy: policy, wait: Self.wait) }

    /// Deadlines and records use the store's time.
    func sender(
        _ topics: DemoTopics, beside worker: WorkerService, clock: StoreClock, app: String, health: Health,
        metrics: Metrics, logger: Logger
    ) -> SenderService {
        var time = SenderTime.real()
        time.wall = { clock.now }
        return SenderService(
            SenderOptions(
                topics.names(.production), partitions: DemoTopics.partitions, rate: Self.rate, app: app),
            worker: WorkerView(ownership: worker.ownership, positions: { worker.positions(of: $0) }),
            carrier: AppStoreCarrier(api, .production, now: WallClock.milliseconds), log: topics.log, time: time,
            health: health, metrics: metrics, logger: logger)
    }
}
