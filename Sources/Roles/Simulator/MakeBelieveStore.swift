// The simulated store of one call, its files and its posts, from the module Simulation.

import Contract
package import Crypto
import JSON
import Platform
package import Simulation

package struct MakeBelieveStore: Sendable {
    private let simulation: Simulation
    private let authority: SimulatedAuthority
    private let forger: Forger
    private let delivery: Delivery.Configuration
    private let key: SimulatedAPIKey
    /// The answers that Apple decides by; nil: it decides by chance.
    let desk: AnswerDesk?

    /// Two apps, so that there are entitlements over several apps. Nobody owns `example`; Apple's ids have ten digits.
    package static let apps = [
        SimulatedApp(bundleId: "com.example.orbit", appAppleId: 6_400_000_001),
        SimulatedApp(bundleId: "com.example.tide", appAppleId: 6_400_000_002),
    ]

    /// Why there is no store.
    package struct Fault: Error { package let words: String }

    init(_ options: SimulateOptions) throws(Fault) {
        var configuration = Simulation.Configuration(
            seed: options.seed, subscribers: options.subscribers, apps: Self.apps, start: options.from,
            end: options.end)
        configuration.sandboxPerMille = options.sandboxPerMille
        configuration.refundsPerMille = options.refunds
        configuration.decidesWithin = options.decidesWithin
        var delivery = Delivery.Configuration(seed: options.seed)
        delivery.duplicatesPerMille = options.duplicates
        delivery.delaysPerMille = options.delays
        delivery.swapsPerMille = options.reorderings
        delivery.forgeriesPerMille = options.forgeries
        try self.init(configuration, delivery, decidesByAnswers: options.decidesByAnswers)
    }

    /// - Parameter decidesByAnswers: the API accepts answers while the stories run.
    package init(
        _ configuration: Simulation.Configuration, _ delivery: Delivery.Configuration, decidesByAnswers: Bool = false
    ) throws(Fault) {
        self.delivery = delivery
        desk = decidesByAnswers ? AnswerDesk() : nil
        key = SimulatedAPIKey(seed: configuration.seed)
        var configuration = configuration
        configuration.desk = desk
        do throws(Simulation.Fault) {
            simulation = try Simulation(configuration)
        } catch {
            throw Fault(words: error.description)
        }
        do throws(CertificateFault) {
            authority = try SimulatedAuthority(seed: configuration.seed)
            forger = try Forger(authority, seed: configuration.seed)
        } catch {
            throw Fault(words: "cannot create a certificate authority: \(error)")
        }
    }

    // MARK: Trust

    package var root: Certificate { authority.root }

    // MARK: Files

    var rootPEM: [UInt8] { authority.rootPEM }

    /// In the format of the setting `apps`.
    var appsFile: [UInt8] {
        var json = JSONWriter()
        json.array { json in
            for app in Self.apps.map(\.contractApp) {
                json.object { json in
                    json.member("bundleId", app.bundleId)
                    if let id = app.appAppleId { json.member("appAppleId", id) }
                    json.name("entitlements")
                    json.object { json in
                        for entitlement in app.entitlements {
                            json.name(text: entitlement.name)
                            json.array { for product in entitlement.productIds { $0.string(product) } }
                        }
                    }
                    json.name("periods")
                    json.object { json in
                        for period in app.periods {
                            json.name(text: period.productId)
                            json.string(period.period.text)
                        }
                    }
                }
            }
        }
        return json.bytes
    }

    /// Writes one subscriber after another.
    func writeTruth(to file: OutputFile, watch: (Double) -> Void) throws(OutputFault) {
        let count = simulation.configuration.subscribers
        for subscriber in 0..<count {
            for line in simulation.truth(of: subscriber).lines { try file.append(line: line) }
            for request in simulation.refundRequests(of: subscriber) { try file.append(line: request.line) }
            watch(Double(subscriber + 1) / Double(count))
        }
        try file.flush()
    }

    // MARK: The API

    func consumptionJudge(of environments: Set<Contract.Environment>) -> ConsumptionJudge {
        ConsumptionJudge(key: key, bundleIds: Self.apps.map(\.bundleId), environments: environments) {
            [simulation] id in
            simulation.find(id)
        }
    }

    package var apiKey: SimulatedAPIKey { key }

    // MARK: Posts

    /// The backend retries like Apple, but sooner.
    private static let usageRetryDelays: [Int64] = [1, 1, 2, 4, 8].map { $0 * 3_600_000 }

    /// The fraction of the stories before that time, 0 to 1.
    func fraction(at time: Int64) -> Double {
        let (start, end) = (simulation.configuration.start, simulation.configuration.end)
        return Double(time - start) / Double(max(1, end - start))
    }

    /// In the order of sending; each is made when it is needed.
    var parcels: Parcels { parcels(withUsage: false) }

    /// - Parameter withUsage: includes the usage records of the app's backend.
    package func parcels(withUsage: Bool) -> Parcels { Parcels(self, withUsage: withUsage) }

    package struct Parcels: IteratorProtocol {
        private let store: MakeBelieveStore
        private let hasUsage: Bool
        private var delivery: Delivery
        private var upcoming: Delivery.Step?
        private var usage = UsageQueue()
        private var waitedUntil: Int64?
        private let authority: SimulatedAuthority
        private let forger: Forger

        fileprivate init(_ store: MakeBelieveStore, withUsage: Bool) {
            self.store = store
            hasUsage = withUsage
            delivery = Delivery(store.simulation.notifications, store.delivery)
            authority = store.authority
            forger = store.forger
            upcoming = delivery.step()
        }

        package mutating func next() -> Parcel? {
            if let until = waitedUntil {
                store.desk?.advance(to: until)
                waitedUntil = nil
                upcoming = delivery.step()
            }
            if let record = usage.pop(by: upcoming?.at) { return Self.parcel(of: record) }
            guard let step = upcoming else { return nil }
            guard case .post(let post) = step else {
                // The caller waits until then before it continues, so answers up to then count.
                waitedUntil = step.at
                return .wait(until: step.at)
            }
            upcoming = delivery.step()
            if hasUsage, post.forgery == nil, !post.isDuplicate {
                usage.add(store.simulation.usage(after: post.notification))
            }
            return parcel(of: post)
        }

        private static func parcel(of record: SimulatedUsage) -> Parcel {
            Parcel(
                at: record.at, subscriber: record.subscriber, notificationUUID: "", expectation: .accepted,
                retryDelays: usageRetryDelays, payload: { record.json }, kind: .usage)
        }

        private func parcel(of post: Post) -> Parcel {
            Parcel(
                at: post.at, subscriber: post.notification.subscriber,
                notificationUUID: post.notification.notificationUUID,
                // A forgery is retried like a notification of production, whatever environment it claims, because its answer matters.
                expectation: post.forgery.map { .refused(code: $0.reason) } ?? .accepted,
                retryDelays: RetrySchedule.delays(
                    in: post.forgery == nil ? post.notification.environment : .production),
                payload: { [authority, forger] in post.signedPayload(by: authority, forger: forger) },
                isRefundRequest: post.forgery == nil && !post.isDuplicate
                    && post.notification.notificationType == "CONSUMPTION_REQUEST")
        }
    }
}
