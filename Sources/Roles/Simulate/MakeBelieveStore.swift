// What the command makes of the module Simulation: the store of one call, its files and its posts.

import Contract
import Crypto
import JSON
import Platform
import Simulation

struct MakeBelieveStore: Sendable {
    private let simulation: Simulation
    private let authority: SimulatedAuthority
    private let forger: Forger
    private let options: SimulateOptions

    /// Two, so that entitlements over several apps are met. Nobody has `example`; Apple's ids have ten digits.
    private static let apps = [
        SimulatedApp(bundleId: "com.example.orbit", appAppleId: 6_400_000_001),
        SimulatedApp(bundleId: "com.example.tide", appAppleId: 6_400_000_002),
    ]

    /// Why there is no such store, in words.
    struct Fault: Error { let words: String }

    init(_ options: SimulateOptions) throws(Fault) {
        self.options = options
        var configuration = Simulation.Configuration(
            seed: options.seed, subscribers: options.subscribers, apps: Self.apps, start: options.from,
            end: options.end)
        configuration.sandboxPerMille = options.sandboxPerMille
        do throws(Simulation.Fault) {
            simulation = try Simulation(configuration)
        } catch {
            throw Fault(words: error.description)
        }
        do throws(CertificateFault) {
            authority = try SimulatedAuthority(seed: options.seed)
            forger = try Forger(authority, seed: options.seed)
        } catch {
            throw Fault(words: "no certificate authority could be made: \(error)")
        }
    }

    // MARK: Files

    var rootPEM: [UInt8] { authority.rootPEM }

    /// As the setting `apps` wants it.
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
                            json.name(entitlement.name)
                            json.array { for product in entitlement.productIds { $0.string(product) } }
                        }
                    }
                    json.name("periods")
                    json.object { json in
                        for period in app.periods { json.member(period.productId, period.period.text) }
                    }
                }
            }
        }
        return json.bytes
    }

    /// Of one subscriber after the other.
    func writeTruth(to file: OutputFile, watch: (Double) -> Void) throws(OutputFault) {
        for subscriber in 0..<options.subscribers {
            for line in simulation.truth(of: subscriber).lines { try file.append(line: line) }
            watch(Double(subscriber + 1) / Double(options.subscribers))
        }
        try file.flush()
    }

    // MARK: Posts

    /// How much of the story is told by then, 0 to 1.
    func fraction(at time: Int64) -> Double {
        Double(time - options.from) / Double(max(1, options.end - options.from))
    }

    /// In the order in which they are to be sent, each made when it is asked for.
    var parcels: Parcels { Parcels(self) }

    struct Parcels: IteratorProtocol {
        private var delivery: Delivery
        private let authority: SimulatedAuthority
        private let forger: Forger

        fileprivate init(_ store: MakeBelieveStore) {
            var configuration = Delivery.Configuration(seed: store.options.seed)
            configuration.duplicatesPerMille = store.options.duplicates
            configuration.delaysPerMille = store.options.delays
            configuration.swapsPerMille = store.options.reorderings
            configuration.forgeriesPerMille = store.options.forgeries
            delivery = Delivery(store.simulation.notifications, configuration)
            authority = store.authority
            forger = store.forger
        }

        mutating func next() -> Parcel? {
            guard let post = delivery.next() else { return nil }
            return Parcel(
                at: post.at, subscriber: post.notification.subscriber,
                notificationUUID: post.notification.notificationUUID,
                // A forgery is judged by the answer it gets, wherever it pretends to come from: it is tried like production's.
                expectation: post.forgery.map { .refused(code: $0.reason) } ?? .accepted,
                retryDelays: RetrySchedule.delays(
                    in: post.forgery == nil ? post.notification.environment : .production),
                payload: { [authority, forger] in post.signedPayload(by: authority, forger: forger) })
        }
    }
}
