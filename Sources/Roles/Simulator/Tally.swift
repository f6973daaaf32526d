// Counts what the courier saw.

import HTTPClient

package struct Tally {
    private(set) var posts = 0
    private(set) var sends = 0
    private(set) var accepted = 0
    private(set) var refused = 0
    private(set) var wrong = 0
    private(set) var givenUp = 0
    /// Counts by reason.
    private(set) var setAside: [String: Int] = [:]
    private var statuses: [Int: Int] = [:]
    private var faults: [HTTPClientFault.Kind: Int] = [:]
    private var lastFault: HTTPClientFault?
    private var lastRefusal: Answer?

    /// Every genuine notification was accepted, and every forgery was refused for its reason.
    var isAllRight: Bool { wrong == 0 && givenUp == 0 && setAside.isEmpty }
    var wasAnswered: Bool { !statuses.isEmpty }

    mutating func countPost() { posts += 1 }

    /// - Parameter fault: why there was no answer.
    mutating func count(_ answer: Answer, _ fault: HTTPClientFault? = nil) {
        sends += 1
        lastFault = fault ?? lastFault
        switch answer {
        case .status(let status, _): statuses[status, default: 0] += 1
        case .none(let kind): faults[kind, default: 0] += 1
        }
    }

    /// Counts the final verdict on a post.
    mutating func count(_ verdict: Verdict, _ answer: Answer) {
        switch verdict {
        case .setAside:
            if case .status(_, let error) = answer { setAside[error ?? "", default: 0] += 1 }
        case .accepted: accepted += 1
        case .refused: refused += 1
        case .wrong: wrong += 1
        case .unsettled:
            givenUp += 1
            lastRefusal = answer
        }
    }

    /// The text of the progress bar.
    var progress: String {
        let settled = accepted + refused + wrong + givenUp + setAside.values.reduce(0, +)
        return "\(posts) posts, \(settled) finished, \(sends - settled) answers required a retry"
    }

    var summary: [String] {
        let answers =
            statuses.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
            + faults.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.rawValue): \($0.value)" }
        var lines = [
            "\(posts) posts, sent \(sends) times: \(accepted) accepted, \(refused) forgeries refused for the right reason",
            "answers: " + (answers.isEmpty ? "none" : answers.joined(separator: ", ")),
        ]
        if givenUp > 0 { lines.append("given up after the last retry: \(givenUp)\(lastCause)") }
        for (reason, count) in setAside.sorted(by: { $0.key < $1.key }) {
            lines.append(
                "set aside as \(reason): \(count); see the log of ingest, and perennial dead-letters list"
            )
        }
        if wrong > 0 { lines.append("forgeries accepted, or refused for a wrong reason: \(wrong)") }
        return lines
    }

    private var lastCause: String {
        switch lastRefusal {
        case .status(let status, let error): "; the last answer was \(status)\(error.map { " \($0)" } ?? "")"
        case .some(.none(let kind)): "; the last error: \(lastFault?.detail ?? kind.rawValue)"
        case nil: ""
        }
    }
}
