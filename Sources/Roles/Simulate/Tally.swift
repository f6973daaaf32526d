// What the courier saw, counted.

import HTTPClient

struct Tally {
    private(set) var posts = 0
    private(set) var sends = 0
    private(set) var accepted = 0
    private(set) var refused = 0
    private(set) var wrong = 0
    private(set) var givenUp = 0
    private var statuses: [Int: Int] = [:]
    private var faults: [HTTPClientFault.Kind: Int] = [:]

    /// Every genuine notification is taken, and every forgery refused for its reason.
    var isAllRight: Bool { wrong == 0 && givenUp == 0 }

    mutating func countPost() { posts += 1 }

    mutating func count(_ answer: Answer) {
        sends += 1
        switch answer {
        case .status(let status, _): statuses[status, default: 0] += 1
        case .none(let kind): faults[kind, default: 0] += 1
        }
    }

    /// The last word on a post.
    mutating func count(_ verdict: Verdict) {
        switch verdict {
        case .accepted: accepted += 1
        case .refused: refused += 1
        case .wrong: wrong += 1
        case .unsettled: givenUp += 1
        }
    }

    /// While it goes on.
    var progress: String {
        let settled = accepted + refused + wrong + givenUp
        return "\(posts) posts, \(settled) settled, \(sends - settled) answers asked for another send"
    }

    var summary: [String] {
        let answers =
            statuses.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
            + faults.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.rawValue): \($0.value)" }
        var lines = [
            "\(posts) posts, sent \(sends) times: \(accepted) accepted, \(refused) forgeries refused as they should be",
            "answers: " + (answers.isEmpty ? "none" : answers.joined(separator: ", ")),
        ]
        if givenUp > 0 { lines.append("given up after the last retry: \(givenUp)") }
        if wrong > 0 { lines.append("forgeries taken, or refused for another reason than theirs: \(wrong)") }
        return lines
    }
}
