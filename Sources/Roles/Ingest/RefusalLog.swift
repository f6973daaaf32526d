// Logs many refusals in one line.

import AppStore
import Synchronization
public import Telemetry

/// A log line for each refusal would let anybody fill the disk by sending garbage. So refusals are counted, and logged
/// from time to time.
///
/// Notifications that were stored in `rejected` although Apple has signed them are logged with their cause: usually a
/// setting is wrong.
public final class RefusalLog: Sendable {
    private struct Aside: Hashable {
        let reason: RejectionReason
        let detail: String
    }

    /// Most causes in one flush; a sender with notifications of other apps could cause more.
    private static let limitCauses = 20

    private let logger: Logger
    private let counts = Mutex<[String: Int]>([:])
    private let asides = Mutex<[Aside: Int]>([:])

    public init(_ logger: Logger) {
        self.logger = logger
    }

    func note(_ outcome: String) { counts.withLock { $0[outcome, default: 0] += 1 } }

    func noteAside(_ rejection: Rejection) {
        let aside = Aside(reason: rejection.reason, detail: rejection.detail)
        asides.withLock { asides in
            if asides[aside] != nil || asides.count < Self.limitCauses { asides[aside, default: 0] += 1 }
        }
    }

    /// Logs what has been noted since the last call, if anything.
    public func flush() {
        tellAsides()
        let noted = counts.withLock { counts in
            defer { counts = [:] }
            return counts
        }
        guard !noted.isEmpty else { return }
        let words = noted.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ", ")
        logger.warning("requests were refused", ["outcomes": .string(words)])
    }

    private func tellAsides() {
        let noted = asides.withLock { asides in
            defer { asides = [:] }
            return asides
        }
        for (aside, count) in noted.sorted(by: { $0.key.detail < $1.key.detail }) {
            let option = "rejected --reason \(aside.reason.rawValue)"
            logger.warning(
                "notifications were set aside, not accepted",
                [
                    "reason": .string(aside.reason.rawValue), "cause": .string(aside.detail), "count": .integer(count),
                    "look": .string("perennial dead-letters list \(option)"),
                    "take": .string(
                        "when the cause is fixed: perennial dead-letters redrive \(option) --apply"),
                ])
        }
    }
}
