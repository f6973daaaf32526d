// The numbers of Apple's error codes.

/// An open set: Apple adds codes. Those that are known today have names.
public struct APIErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// Whether and when a request that got this code may be retried.
    public enum Repetition: Sendable, CaseIterable {
        /// A retry would get the same answer.
        case never
        /// After a pause that grows with each retry.
        case later
        /// Not before the time of `Retry-After`; until then no other request of the app may be sent either.
        case atRetryAfter
        /// The requested item may not be available yet.
        case polling
        /// The listing must start again at its first page.
        case fromTheFirstPage
    }

    public let rawValue: Int64

    public init(rawValue: Int64) { self.rawValue = rawValue }

    /// The first three digits of the code.
    public var httpStatus: Int { Int(rawValue / 10_000) }

    public var repetition: Repetition {
        switch self {
        case .accountNotFoundRetryable, .appNotFoundRetryable, .originalTransactionIdNotFoundRetryable: .later
        case .testNotificationNotFound: .polling
        case .paginationTokenExpired: .fromTheFirstPage
        default:
            switch httpStatus {
            case 429: .atRetryAfter
            case 408, 500...599: .later
            default: .never
            }
        }
    }

    /// nil: Apple has added the code after this was written.
    public var meaning: String? { Self.meanings[self] }

    public var description: String { meaning.map { "\(rawValue), \($0)" } ?? "\(rawValue)" }

    /// Every code that has a name here.
    public static var known: Set<APIErrorCode> { Set(meanings.keys) }
}
