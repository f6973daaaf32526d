// The certificate of ingest and its key, on disk.

import HTTP
import Platform
import Synchronization
import Telemetry

/// Reads the two files, gives them to the server again when they change, and knows how long what is shown is valid.
final class CertificateFiles: Sendable {
    let certificatePath: String
    let keyPath: String
    private let loaded: Counter
    private let failed: Counter
    private let isCurrent: Gauge
    private let expiry: Gauge
    private let now: @Sendable () -> Int64
    /// Of what is shown.
    private let term = Mutex<CertificateTerm?>(nil)
    /// Of what was tried last, whether it could be used or not: what is broken is told once.
    private let tried = Mutex<[FileStamp?]>([])
    /// One load at a time: SIGHUP and the look at the files come on threads of their own, and of two at once the one that read
    /// the older files could be the last to hand them over.
    private let loading = Mutex(())

    /// - Parameter now: milliseconds since 1970.
    init(certificatePath: String, keyPath: String, now: @escaping @Sendable () -> Int64, metrics: Metrics) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.now = now
        func counter(_ result: String) -> Counter {
            metrics.counter(
                "perennial_ingest_certificate_loads_total", help: "Times the TLS certificate was read again.",
                labels: ["result": result])
        }
        loaded = counter("loaded")
        failed = counter("failed")
        isCurrent = metrics.gauge(
            "perennial_ingest_certificate_current",
            help: "1 when the certificate in use is that of the files; 0 when the files cannot be used.")
        isCurrent.set(1)
        expiry = metrics.gauge(
            "perennial_ingest_certificate_expiry_timestamp_seconds",
            help: "When the TLS certificate in use ends, in seconds since 1970; 0 before it is read.")
    }

    /// What a server is started with. One that is not valid now is shown all the same, because a door that does not open helps
    /// nobody; `trouble` says so.
    func first() throws -> HTTPServer.Identity {
        let identity = try read()
        show(try identity.term())
        return identity
    }

    var trouble: String? { term.withLock { $0 }?.trouble(at: now()) }
    var warning: String? { term.withLock { $0 }?.warning(at: now()) }

    private func show(_ shown: CertificateTerm) {
        term.withLock { $0 = shown }
        expiry.set(Double(shown.notAfter / 1000))
    }

    private func read() throws -> HTTPServer.Identity {
        // Before the files themselves: what changes in between is seen as a change.
        let stamps = [FileStamp(certificatePath), FileStamp(keyPath)]
        tried.withLock { $0 = stamps }
        return HTTPServer.Identity(certificate: try readFile(certificatePath), key: try readFile(keyPath))
    }

    var haveChanged: Bool {
        let stamps = [FileStamp(certificatePath), FileStamp(keyPath)]
        return tried.withLock { $0 != stamps }
    }

    /// What the server shows now; nil: what it has shown before. Throws when the files cannot be used, such as between the
    /// writing of the one and of the other, or when their certificate is not valid now; the server goes on with what it has.
    func load(into server: HTTPServer) throws -> CertificateTerm? {
        try loading.withLock { _ in try loadNow(into: server) }
    }

    private func loadNow(into server: HTTPServer) throws -> CertificateTerm? {
        do {
            let identity = try read()
            let next = try identity.term()
            let isShown = term.withLock { $0 == next }
            if !isShown, let trouble = next.trouble(at: now()) { throw CertificateFilesFault(description: trouble) }
            let isNew = try server.replaceIdentity(identity)
            show(next)
            isCurrent.set(1)
            if isNew { loaded.add() }
            return isNew ? next : nil
        } catch {
            isCurrent.set(0)
            failed.add()
            throw error
        }
    }
}

private struct CertificateFilesFault: Error, CustomStringConvertible {
    let description: String
}
