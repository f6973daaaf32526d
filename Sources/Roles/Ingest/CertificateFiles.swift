// The files with the certificate of ingest and its key.

import HTTP
import Platform
import Synchronization
import Telemetry

/// Reads the two files, passes them to the server again when they change, and knows until when the certificate in use
/// is valid.
final class CertificateFiles: Sendable {
    let certificatePath: String
    let keyPath: String
    private let loaded: Counter
    private let failed: Counter
    private let isCurrent: Gauge
    private let expiry: Gauge
    private let now: @Sendable () -> Int64
    /// Of the certificate in use.
    private let term = Mutex<CertificateTerm?>(nil)
    /// Of the files that were tried last, whether they could be used or not, so that broken files are logged once.
    private let tried = Mutex<[FileStamp?]>([])
    /// One load at a time: SIGHUP and the check of the files run on different threads. If two loads overlapped, the one
    /// that read the older files could finish last.
    private let loading = Mutex(())

    /// - Parameter now: milliseconds since 1970.
    init(certificatePath: String, keyPath: String, now: @escaping @Sendable () -> Int64, metrics: Metrics) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.now = now
        func counter(_ result: String) -> Counter {
            metrics.counter(
                "perennial_ingest_certificate_loads_total", help: "Loads of the TLS certificate files, by result.",
                labels: ["result": result])
        }
        loaded = counter("loaded")
        failed = counter("failed")
        isCurrent = metrics.gauge(
            "perennial_ingest_certificate_current",
            help: "1 while the certificate in use is the one in the files; 0 while the files cannot be used.")
        isCurrent.set(1)
        expiry = metrics.gauge(
            "perennial_ingest_certificate_expiry_timestamp_seconds",
            help: "When the TLS certificate in use expires, in seconds since 1970; 0 before it is read.")
    }

    /// The identity to start the server with. A certificate that is not valid now is used all the same: `trouble`
    /// reports it, and a server that does not start would help nobody.
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
        // Read before the files: if a file changes in between, it counts as changed.
        let stamps = [FileStamp(certificatePath), FileStamp(keyPath)]
        tried.withLock { $0 = stamps }
        return HTTPServer.Identity(certificate: try readFile(certificatePath), key: try readFile(keyPath))
    }

    var haveChanged: Bool {
        let stamps = [FileStamp(certificatePath), FileStamp(keyPath)]
        return tried.withLock { $0 != stamps }
    }

    /// The certificate that the server uses from now on; nil: it has not changed. Throws if the files cannot be used,
    /// for example because only one of them has been replaced yet, or if the certificate is not valid now. Then the
    /// server keeps the one in use.
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
