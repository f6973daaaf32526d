// One POST of the simulated App Store, and its result.

package import HTTPClient

/// What to post, and what the right answer is; or that there is nothing to post before some time.
package struct Parcel: Sendable {
    package enum Expectation: Sendable, Equatable {
        case accepted
        /// The reason code that the contract promises for this forgery.
        case refused(code: String)
    }

    /// When it is due, in milliseconds of the simulation's time.
    package let at: Int64
    /// Posts of one subscriber keep their order.
    let subscriber: Int
    package let notificationUUID: String
    package let expectation: Expectation
    /// Delays before each retry, in milliseconds of Apple's time; empty in sandbox.
    let retryDelays: [Int64]
    /// The signed payload. It is made again for each send, with the same bytes, because the payloads of an hour's outage would fill
    /// the memory.
    let payload: @Sendable () -> [UInt8]
    package var kind = Kind.notification
    /// Apple waits for the developer's answer.
    package var isRefundRequest = false

    package enum Kind: Sendable, Equatable {
        case notification
        /// A usage record of the app's backend.
        case usage
        /// Nothing to post: the next post is not decided before this time.
        case wait
    }

    static func wait(until time: Int64) -> Parcel {
        Parcel(
            at: time, subscriber: -1, notificationUUID: "", expectation: .accepted, retryDelays: [], payload: { [] },
            kind: .wait)
    }
}

/// The result of one send.
package enum Answer: Sendable, Equatable {
    /// `error`: the reason code of the body, if there is one. With 200 it says that the notification was stored in `rejected`.
    case status(Int, error: String?)
    case none(HTTPClientFault.Kind)

    /// The limit for the body of an answer.
    package static let maxBytes = 64 << 10
}

/// The final result of a post, or that it must be sent again.
package enum Verdict: String, Sendable {
    case accepted
    case refused
    /// A forgery that was accepted, or refused for a wrong reason.
    case wrong
    /// Genuine, but ingest stored it in `rejected`.
    case setAside = "set_aside"
    case unsettled
}

extension Parcel.Expectation {
    /// Apple counts 200 to 206 as success and tries again after anything else.
    private static let success = 200...206

    /// The status that the contract gives a reason code if there is room to store refused bodies.
    private static func status(of code: String) -> Int {
        switch code {
        // Stored, so that it can be redriven later. So Apple need not send it again.
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
            // The server cannot judge now.
            if status >= 500 || status == 408 || status == 429 { return .unsettled }
            return status == expected && error.map { $0 == code } != false ? .refused : .wrong
        }
    }
}
