// The numbers by which Apple says what is wrong.

/// An open set: Apple adds codes. Those that are known today have names.
public struct APIErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// What may be done with a request that was answered so.
    public enum Repetition: Sendable, CaseIterable {
        /// It would be answered in the same way.
        case never
        /// After a pause that grows.
        case later
        /// Not before the time of `Retry-After`, and nor may any other request of the app.
        case atRetryAfter
        /// What is asked for may not be there yet.
        case polling
        /// The listing has to begin again.
        case fromTheFirstPage
    }

    public let rawValue: Int64

    public init(rawValue: Int64) { self.rawValue = rawValue }

    /// The first three digits.
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

    /// nil: Apple has named it after this was written.
    public var meaning: String? { Self.meanings[self] }

    public var description: String { meaning.map { "\(rawValue), \($0)" } ?? "\(rawValue)" }

    /// Every code that has a name here.
    public static var known: Set<APIErrorCode> { Set(meanings.keys) }
}
