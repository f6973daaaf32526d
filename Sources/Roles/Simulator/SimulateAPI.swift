// `perennial simulate --api`: its files, its listeners, and how it ends.

import CommandLine
import Crypto
import HTTP
import Platform
import Simulation
import Synchronization

/// Serves from `start` on. Handles the signals of the process.
final class SimulateAPI: Sendable {
    typealias Stop = SimulateRun.Stop

    private static let watchInterval: Duration = .milliseconds(100)

    private let options: SimulateAPIOptions
    private let server: StoreAPIServer
    private let isOver = Latch()
    private let isServingOnly = Mutex(false)
    private let output: Output

    private init(_ options: SimulateAPIOptions, _ server: StoreAPIServer, _ output: Output) {
        self.options = options
        self.output = output
        self.server = server
    }

    // MARK: Starting

    static func start(
        _ options: SimulateOptions, address: ListenAddress, store: MakeBelieveStore, output: Output
    ) throws(Stop) -> SimulateAPI {
        let identity = try identity(options.api, address)
        var configuration = StoreAPIServer.Configuration(
            address: address, sandbox: options.api.sandbox, identity: identity)
        configuration.api.seed = options.seed
        configuration.api.troublesPerMille = options.api.troubles
        configuration.api.requestsPerSecond = options.api.rate
        configuration.api.hold = options.api.hold
        let journal = try writing { () throws(OutputFault) in
            if let path = options.api.authority, let identity { try OutputFile.write(identity.authority, to: path) }
            if let path = options.api.key { try OutputFile.write(store.apiKey.pem, to: path) }
            return try options.api.journal.map { path throws(OutputFault) in try APIJournal(path: path) }
        }
        let server: StoreAPIServer
        do throws(HTTPServerFault) {
            server = try StoreAPIServer(configuration, store: store, journal: journal)
        } catch {
            throw Stop(code: .gaveUp, words: "--api: \(error)")
        }
        let api = SimulateAPI(options.api, server, output)
        let lines = api.settings(of: store)
        try writing { () throws(OutputFault) in try api.write(lines) }
        for line in lines { output.message(line) }
        WorkerThread.start("signals") { api.watchSignals() }
        return api
    }

    private static func writing<T>(_ body: () throws(OutputFault) -> T) throws(Stop) -> T {
        do throws(OutputFault) {
            return try body()
        } catch {
            throw .gaveUp(error)
        }
    }

    private static func identity(_ options: SimulateAPIOptions, _ address: ListenAddress) throws(Stop) -> APIIdentity? {
        guard options.authority != nil else { return nil }
        do throws(CertificateFault) {
            return try APIIdentity(for: [address] + (options.sandbox.map { [$0] } ?? []))
        } catch {
            throw Stop(code: .gaveUp, words: "cannot create a certificate for --api: \(error)")
        }
    }

    /// In the format of a settings file.
    private func settings(of store: MakeBelieveStore) -> [String] {
        var lines = ["apple.issuer.id = \(store.apiKey.issuerId)", "apple.key.id = \(store.apiKey.keyId)"]
        if let path = options.key { lines.append("apple.key = \(path)") }
        lines.append("apple.api.production = \(server.production)")
        lines.append("apple.api.sandbox = \(server.sandbox)")
        if let path = options.authority { lines.append("apple.ca = \(path)") }
        return lines
    }

    private func write(_ lines: [String]) throws(OutputFault) {
        guard let path = options.settings else { return }
        try OutputFile.replace(path, with: Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    // MARK: Ending

    /// Keeps serving after the last post, until the time is over or a signal arrives. Blocks.
    func serve() throws(OutputFault) {
        isServingOnly.withLock { $0 = true }
        if options.duration == nil { output.message("serving until SIGINT or SIGTERM") }
        let deadline = options.duration.map { Deadline(after: $0) }
        while !isOver.wait(for: min(deadline?.remaining ?? Self.watchInterval, Self.watchInterval)) {
            if server.fault != nil || deadline?.hasPassed ?? false { break }
        }
        stop()
        if let fault = server.fault { throw fault }
    }

    /// Also stops it early.
    func stop() {
        isOver.open()
        server.stop()
    }

    private func watchSignals() {
        while !isOver.isOpen {
            guard let signal = Signals.wait(for: Self.watchInterval), signal != .hangUp else { continue }
            guard isServingOnly.withLock({ $0 }) else {
                printMessage("perennial simulate: interrupted before everything was posted")
                endProcess(.gaveUp)
            }
            isOver.open()
        }
    }
}
