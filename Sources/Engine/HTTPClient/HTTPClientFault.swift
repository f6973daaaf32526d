// Why a request got no answer.

internal import CCurl

public struct HTTPClientFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// A closed set: callers decide by it, and it is a label of metrics.
    public enum Kind: String, Sendable, CaseIterable {
        /// The URL or a header is not valid; sending the request again does not help.
        case invalidRequest = "invalid_request"
        /// Nothing was sent; the same holds for the next two.
        case nameNotFound = "name_not_found"
        /// Nobody listens there, or there is no route.
        case notConnected = "not_connected"
        /// The two sides did not agree on TLS, or the certificate is not trusted.
        case tls
        case timedOut = "timed_out"
        /// The connection ended before the answer was complete. The server may have acted on the request.
        case broken
        /// The answer is not HTTP.
        case badAnswer = "bad_answer"
        case tooLarge = "too_large"
        /// As many requests as the client allows are waiting already.
        case overloaded
        /// Ended by `cancel`, or the client was closed.
        case cancelled
        /// `mayBegin` returned false before anything of the request was written: the server knows nothing of it.
        case withdrawn
        /// Any other error of the library.
        case failed
    }

    public let kind: Kind
    /// For people. Names hosts, never paths, headers or bodies: these may contain what must not be logged.
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
        // The library reports an answer without a head, as in HTTP/0.9, as an unsupported protocol; the scheme of the
        // URL was checked before.
        case CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP2, CURLE_BAD_CONTENT_ENCODING, CURLE_UNSUPPORTED_PROTOCOL:
            self = .badAnswer
        default: self = .failed
        }
    }
}
