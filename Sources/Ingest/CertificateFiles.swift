// The certificate of ingest and its key, on disk.

import HTTP
import Platform
import Synchronization
import Telemetry

/// Reads the two files, and gives them to the server again when they change.
final class CertificateFiles: Sendable {
    let certificatePath: String
    let keyPath: String
    private let loaded: Counter
    private let failed: Counter
    private let isCurrent: Gauge
    /// Of what was tried last, whether it could be used or not: what is broken is told once.
    private let tried = Mutex<[FileStamp?]>([])
    /// One load at a time: SIGHUP and the look at the files come on threads of their own, and of two at once the one that read
    /// the older files could be the last to hand them over.
    private let loading = Mutex(())

    init(certificatePath: String, keyPath: String, metrics: Metrics) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
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
    }

    func read() throws -> HTTPServer.Identity {
        // Before the files themselves: what changes in between is seen as a change.
        let stamps = [FileStamp(certificatePath), FileStamp(keyPath)]
        tried.withLock { $0 = stamps }
        return HTTPServer.Identity(certificate: try readFile(certificatePath), key: try readFile(keyPath))
    }

    var haveChanged: Bool {
        let stamps = [FileStamp(certificatePath), FileStamp(keyPath)]
        return tried.withLock { $0 != stamps }
    }

    /// true: the server shows another certificate now. Throws when the files cannot be used, such as between the writing of
    /// the one and of the other; the server goes on with what it has.
    func load(into server: HTTPServer) throws -> Bool {
        try loading.withLock { _ in try loadNow(into: server) }
    }

    private func loadNow(into server: HTTPServer) throws -> Bool {
        do {
            let isNew = try server.replaceIdentity(try read())
            isCurrent.set(1)
            if isNew { loaded.add() }
            return isNew
        } catch {
            isCurrent.set(0)
            failed.add()
            throw error
        }
    }
}
