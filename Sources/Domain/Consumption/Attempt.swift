// Apple's response to one attempt to send an answer.

internal import Contract
public import JSON
public import Notices
internal import Records

/// A row of `consumption-attempts`.
public struct Attempt: Sendable, Equatable {
    /// `notificationUUID` of the refund request.
    public var id: Text
    /// Starts at 1; counted per request, across crashes.
    public var number: Int64
    /// When the response came or the attempt was given up, by the clock of the sender's host.
    public var at: Int64
    /// nil: no response came.
    public var httpStatus: Int64?
    public var errorCode: Int64?
    /// When the next attempt is due. It is nil if there is no next attempt.
    public var retryAt: Int64?

    public init(id: Text, number: Int64, at: Int64, httpStatus: Int64?, errorCode: Int64?, retryAt: Int64?) {
        self.id = id
        self.number = number
        self.at = at
        self.httpStatus = httpStatus
        self.errorCode = errorCode
        self.retryAt = retryAt
    }

    /// nil if the record is not an attempt.
    public init?(_ record: borrowing JSONDocument) {
        guard record.kind(of: record.root) == .object,
            record.integer("v", of: record.root) == Int64(RecordType.consumptionAttempt.version),
            let id = record.text("id", of: record.root), !id.bytes.isEmpty,
            let number = record.integer("attempt", of: record.root), number > 0,
            let at = record.integer("at", of: record.root)
        else { return nil }
        self.init(
            id: id, number: number, at: at, httpStatus: record.integer("httpStatus", of: record.root),
            errorCode: record.integer("errorCode", of: record.root),
            retryAt: record.integer("retryAt", of: record.root))
    }

    public var value: [UInt8] {
        var json = JSONWriter(capacity: 160)
        json.object { json in
            json.member("v", RecordType.consumptionAttempt.version)
            json.member("id", utf8: id.bytes)
            json.member("attempt", number)
            json.member("at", at)
            json.member("httpStatus", orNull: httpStatus)
            json.member("errorCode", orNull: errorCode)
            json.member("retryAt", orNull: retryAt)
        }
        return json.bytes
    }

    public enum Verdict: Sendable, Equatable {
        /// Apple has accepted the answer.
        case sent
        /// Send the same bytes again later.
        case retry
        /// Apple did not accept the token: retry once with a new token, then rarely.
        case unauthorized
        /// Apple will never accept the answer.
        case failed
    }

    public var verdict: Verdict { Self.verdict(httpStatus: httpStatus) }

    public static func verdict(httpStatus: Int64?) -> Verdict {
        switch httpStatus {
        case 202?: .sent
        case 401?: .unauthorized
        case nil, 408?, 429?, (500...599)?: .retry
        default: .failed
        }
    }
}
