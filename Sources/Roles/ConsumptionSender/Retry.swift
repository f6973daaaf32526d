// Determines when an answer is retried.

internal import Consumption

enum Retry {
    /// In milliseconds, like all times here; doubled with each attempt.
    static let firstWait: Int64 = 1_000
    static let longestWait: Int64 = 600_000
    /// For an app whose key Apple refuses even with a new token.
    static let unauthorizedWait: Int64 = 60_000
    /// After a 429 without `Retry-After`.
    static let limitedWait: Int64 = 60_000
    /// Apple limits requests by the hour. A longer `Retry-After` is shortened to an hour.
    static let longestLimitedWait: Int64 = 3_600_000
    /// Before the deadline: an attempt that begins later could end after it.
    static let lastStart: Int64 = 30_000
    /// Before the last start: an attempt that is due must look at the log first.
    static let lookingTime: Int64 = 10_000
    /// For answers that are too late by the host's clock, which may be wrong and be set back.
    static let tooLateWait: Int64 = 60_000

    /// - Parameters:
    ///   - number: the number of the failed attempt.
    ///   - jitter: from 0 to 1.
    static func wait(after number: Int64, jitter: Double) -> Int64 {
        let doublings = number > 1 ? min(number - 1, 20) : 0
        let wait = min(firstWait << doublings, longestWait)
        // At least half of it: an attempt right after another one meets the same trouble.
        return wait / 2 + Int64(Double(wait / 2) * jitter)
    }

    /// - Parameter retryAfter: the time that Apple gave, in milliseconds since 1970.
    static func pauseEnd(retryAfter: Int64?, now: Int64) -> Int64 {
        guard let retryAfter, retryAfter > now else { return now + limitedWait }
        return min(retryAfter, now + longestLimitedWait)
    }

    /// A wait that goes beyond the last possible start ends at that start, so that it is used.
    static func due(_ wanted: Int64, now: Int64, deadline: Int64) -> Int64 {
        let last = deadline - lastStart - lookingTime
        return wanted > last && now + firstWait < last ? last : wanted
    }
}
