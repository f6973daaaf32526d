// Failures of the simulated Apple: chosen at random from a seed, and by a rate limit.

import Crypto

/// One way in which a request goes wrong.
enum APITrouble: String, Sendable, CaseIterable {
    case tooMany = "too_many"
    case internalError = "internal"
    case unavailable
    /// No answer; before or after Apple accepted the body.
    case timeoutBefore = "timeout_before"
    case timeoutAfter = "timeout_after"
    /// The connection is cut.
    case cutBefore = "cut_before"
    case cutAfter = "cut_after"

    /// Apple has accepted the body, if it was valid.
    var comesAfter: Bool { self == .timeoutAfter || self == .cutAfter }
}

/// The n-th try of the same request always gets the same failure, whatever happens in between.
struct APIChance {
    /// Different requests whose tries are counted, some hundred bytes each. Beyond this number counting starts again.
    private static let maxRequests = 1_000_000

    let seed: UInt64
    let perMille: Int
    private var tries: [[UInt8]: Int] = [:]

    init(seed: UInt64, perMille: Int) {
        self.seed = seed
        self.perMille = perMille
    }

    /// - Returns: nil if the request does not fail. `draw` is a random number for further choices.
    mutating func trouble(of path: String, body: [UInt8]) -> (trouble: APITrouble, draw: UInt64)? {
        guard perMille > 0 else { return nil }
        let text = Array("\(seed) \(path) ".utf8) + body
        let request = SHA256.digest(text.span)
        if tries.count >= Self.maxRequests { tries.removeAll() }
        tries[request, default: 0] += 1
        let again = request + Array(" \(tries[request, default: 0])".utf8)
        let bytes = SHA256.digest(again.span)
        func number(_ place: Int) -> UInt64 { bytes[place..<place + 8].reduce(0) { $0 << 8 | UInt64($1) } }
        guard number(0) % 1000 < UInt64(perMille) else { return nil }
        return (APITrouble.allCases[Int(number(8) % UInt64(APITrouble.allCases.count))], number(16))
    }
}

/// Apple's limit of requests per second for each app. Each second of the clock is counted separately.
struct APIRate {
    private static let second: Int64 = 1000

    /// nil: requests are not limited.
    let perSecond: Int?
    private var counted: Int64 = 0
    private var counts: [String: Int] = [:]

    init(perSecond: Int?) { self.perSecond = perSecond }

    /// - Parameter now: milliseconds since 1970.
    /// - Returns: nil: the request may pass; otherwise when to retry, in milliseconds since 1970.
    mutating func refusal(of app: String, now: Int64) -> Int64? {
        guard let perSecond else { return nil }
        if now / Self.second != counted {
            counted = now / Self.second
            counts.removeAll(keepingCapacity: true)
        }
        counts[app, default: 0] += 1
        return counts[app, default: 0] > perSecond ? (counted + 1) * Self.second : nil
    }
}
