// Why there is no answer.

internal import CCurl

public struct HTTPClientFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// A closed set: callers decide by it, and it becomes a label of metrics.
    public enum Kind: String, Sendable, CaseIterable {
        /// The URL or a header is none; sending again does not help.
        case invalidRequest = "invalid_request"
        /// Nothing was sent, as with the next two.
        case nameNotFound = "name_not_found"
        /// Nobody listens there, or there is no way.
        case notConnected = "not_connected"
        /// No agreement on TLS, or a certificate that is not trusted.
        case tls
        case timedOut = "timed_out"
        /// The connection ended in the middle. The request may have been acted upon.
        case broken
        /// What came is not HTTP.
        case badAnswer = "bad_answer"
        case tooLarge = "too_large"
        /// More requests wait than the client holds.
        case overloaded
        /// By `cancel`, or the client was closed.
        case cancelled
        /// `mayBegin` said no before anything of the request was written: the server knows nothing of it.
        case withdrawn
        /// Anything else that the library knows.
        case failed
    }

    public let kind: Kind
    /// For people. Names hosts, never paths, headers or bodies: these may hold what must not be logged.
    public let detail: String

    public init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }

    public var description: String { "\(kind.rawValue): \(detail)" }
}

extension HTTPClientFault.Kind {
    init(_ code: CURLcode) {
        switch code {
        case CURLE_URL_MALFORMAT: self = .invalidRequest
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: self = .nameNotFound
        case CURLE_COULDNT_CONNECT, CURLE_PROXY, CURLE_INTERFACE_FAILED: self = .notConnected
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS:
            self = .tls
        case CURLE_OPERATION_TIMEDOUT: self = .timedOut
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_HTTP2_STREAM:
            self = .broken
        // An unsupported protocol is an answer without a head, as of HTTP/0.9; the scheme of the URL was looked at before.
        case CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP2, CURLE_BAD_CONTENT_ENCODING, CURLE_UNSUPPORTED_PROTOCOL:
            self = .badAnswer
        default: self = .failed
        }
    }
}
