// One POST of the make-believe App Store, and what comes of it.

import HTTPClient

/// What is to be posted, and what a right answer to it is; or that there is nothing to post before some time.
struct Parcel: Sendable {
    enum Expectation: Sendable, Equatable {
        case accepted
        /// The reason code that the contract promises for this forgery.
        case refused(code: String)
    }

    /// When it is due, in milliseconds of the simulation's time.
    let at: Int64
    /// Whose posts keep their order among each other.
    let subscriber: Int
    let notificationUUID: String
    let expectation: Expectation
    /// Delays before the second send, the third…, in milliseconds of Apple's time; empty in sandbox.
    let retryDelays: [Int64]
    /// The signed payload. Made when it is sent and again for each retry, always the same: kept, those of an hour's outage
    /// would fill the memory.
    let payload: @Sendable () -> [UInt8]
    var kind = Kind.notification
    /// Apple waits for what the developer says.
    var isRefundRequest = false

    enum Kind: Sendable, Equatable {
        case notification
        /// A record of the app's backend.
        case usage
        /// Nothing to post: what comes next is not decided before its time.
        case wait
    }

    static func wait(until time: Int64) -> Parcel {
        Parcel(
            at: time, subscriber: -1, notificationUUID: "", expectation: .accepted, retryDelays: [], payload: { [] },
            kind: .wait)
    }
}

/// What one send brought.
enum Answer: Sendable, Equatable {
    /// `error`: the reason code of the body, if there is one. Beside 200 it says that the notification was kept, not taken.
    case status(Int, error: String?)
    case none(HTTPClientFault.Kind)

    /// Nothing of the answer is worth more than this.
    static let maxBytes = 64 << 10
}

/// What became of a post in the end, or that it is to be sent again.
enum Verdict: String, Sendable {
    case accepted
    case refused
    /// A forgery that was taken, or refused for another reason than the one it deserves.
    case wrong
    /// Genuine, and kept by ingest without being taken.
    case setAside = "set_aside"
    case unsettled
}

extension Parcel.Expectation {
    /// Apple counts 200 to 206 as success and tries again after anything else.
    private static let success = 200...206

    /// The status that the contract gives a reason code when there is room to keep what is refused.
    private static func status(of code: String) -> Int {
        switch code {
        // Kept, so that it can be taken later, and therefore nothing Apple has to send again.
        case "wrong_app", "wrong_environment", "inconsistent", "in_future": 200
        case "too_large": 413
        default: 400
        }
    }

    func verdict(on answer: Answer) -> Verdict {
        guard case .status(let status, let error) = answer else { return .unsettled }
        switch self {
        case .accepted:
            guard Self.success.contains(status) else { return .unsettled }
            return error == nil ? .accepted : .setAside
        case .refused(let code):
            let expected = Self.status(of: code)
            if Self.success.contains(status) {
                return Self.success.contains(expected) && error.map { $0 == code } != false ? .refused : .wrong
            }
            // The server is not able to judge now.
            if status >= 500 || status == 408 || status == 429 { return .unsettled }
            return status == expected && error.map { $0 == code } != false ? .refused : .wrong
        }
    }
}
