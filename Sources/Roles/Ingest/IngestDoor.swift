// How ingest listens: from its settings, or as its owner chooses.

import Configuration
public import HTTP
public import Platform

/// The address that ingest listens on, its TLS identity, and its limits.
public struct IngestDoor: Sendable {
    public enum Identity: Sendable {
        /// Plaintext.
        case none
        /// The files are read again when they change.
        case files(certificate: String, key: String)
        case inMemory(HTTPServer.Identity)
    }

    public var listen: ListenAddress
    public var identity: Identity
    public var maxBodyBytes = 262_144
    public var maxInFlight = 2048
    public var maxBufferedBytes = 64 << 20

    public init(listen: ListenAddress, identity: Identity) {
        self.listen = listen
        self.identity = identity
    }

    init(_ settings: Configuration.Ingest) {
        listen = settings.listen
        if !settings.isPlaintext, let certificate = settings.certificatePath, let key = settings.keyPath {
            identity = .files(certificate: certificate, key: key)
        } else {
            identity = .none
        }
        maxBodyBytes = settings.maxBodyBytes
        maxInFlight = settings.maxInFlight
        maxBufferedBytes = settings.maxBufferedBytes
    }
}
