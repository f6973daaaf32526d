// The listeners of the simulated App Store Server API, and what callers need to know about them.

import Contract
import Crypto
package import HTTP
package import Platform
import Simulation
import Telemetry

/// One listener for both environments, or one for each. Listens from `init` to `stop`.
package final class StoreAPIServer: Sendable {
    package struct Configuration: Sendable {
        /// The address for production, or for both if `sandbox` is nil.
        var address: ListenAddress
        var sandbox: ListenAddress?
        /// For TLS; nil: the server speaks plain HTTP.
        var identity: APIIdentity?
        /// `server` is set later.
        var api = StoreAPI.Configuration(server: "both")
    }

    private struct Door: Sendable {
        let api: StoreAPI
        let server: HTTPServer
    }

    private let doors: [Door]
    private let stopping = Latch()
    private let scheme: String

    package init(
        _ configuration: Configuration, store: MakeBelieveStore, journal: APIJournal?
    ) throws(HTTPServerFault) {
        scheme = configuration.identity == nil ? "http" : "https"
        var doors: [Door] = []
        let isSplit = configuration.sandbox != nil
        let places: [(name: String, environments: Set<Contract.Environment>, address: ListenAddress)] =
            [
                (
                    isSplit ? "production" : "both", isSplit ? [.production] : [.production, .sandbox],
                    configuration.address
                )
            ]
            + (configuration.sandbox.map { [("sandbox", [.sandbox], $0)] } ?? [])
        for place in places {
            var settings = configuration.api
            settings.server = place.name
            let api = StoreAPI(
                settings, judge: store.consumptionJudge(of: place.environments), desk: store.desk, journal: journal)
            var server = HTTPServer.Configuration(name: "store-api-\(place.name)", address: place.address)
            server.identity = configuration.identity?.server
            do throws(HTTPServerFault) {
                doors.append(
                    Door(
                        api: api,
                        server: try HTTPServer(server, handler: api, metrics: Metrics(), logger: Logger { _ in })))
            } catch {
                for door in doors { door.server.stop(by: Deadline(after: .zero)) }
                throw error
            }
        }
        self.doors = doors
        for door in doors { WorkerThread.start("api-hold") { [stopping] in door.api.holdCallers(until: stopping) } }
    }

    /// In the form of `apple.api.production` and `apple.api.sandbox`.
    package var production: String { "\(scheme)://\(doors[0].server.address)" }
    package var sandbox: String { "\(scheme)://\(doors[doors.count - 1].server.address)" }

    /// Why the journal is incomplete.
    var fault: OutputFault? { doors.lazy.compactMap(\.api.fault).first }

    /// Answers the requests in flight, and closes those that get no answer.
    package func stop() {
        stopping.open()
        for door in doors { door.server.stop(by: Deadline(after: .seconds(5))) }
    }
}

extension StoreAPIServer.Configuration {
    package init(address: ListenAddress) { self.init(address: address, sandbox: nil) }
}

/// A certificate of an authority that was made for one run, and that authority for its clients.
struct APIIdentity: Sendable {
    let server: HTTPServer.Identity
    let authority: [UInt8]

    private static let day: Int64 = 86_400_000
    private static let name = "perennial simulate"

    /// - Parameter addresses: the addresses of the listeners; loopback is added.
    init(for addresses: [ListenAddress]) throws(CertificateFault) {
        let (rootKey, key) = (SigningKey(.p256), SigningKey(.p256))
        let now = WallClock.milliseconds()
        let validity = (now - Self.day)...(now + 365 * Self.day)
        func serial() -> [UInt8] { [0x40] + (0..<15).map { _ in UInt8.random(in: 0...255) } }
        let root = try Certificate.make(
            CertificateRequest(
                commonName: "\(Self.name) authority", serial: serial(), validity: validity,
                extensions: [.basicConstraints(isAuthority: true, pathLength: 0), .keyUsage([5, 6])]), key: rootKey)
        let own = addresses.map(\.address).filter { !$0.isLoopback }.map(\.description)
        let leaf = try Certificate.make(
            CertificateRequest(
                commonName: Self.name, serial: serial(), validity: validity,
                extensions: [
                    .basicConstraints(isAuthority: false, pathLength: nil), .keyUsage([0]),
                    .subjectAlternativeNames(dns: ["localhost"], addresses: ["127.0.0.1", "::1"] + own),
                ]), key: key, issuer: (root, rootKey))
        server = HTTPServer.Identity(certificate: leaf.pem, key: key.pem)
        authority = root.pem
    }
}
