// A subscription's life as one line of characters.

import Entitlements
import Notices
import Records

/// Each column is a piece of time, and shows its longest state.
struct TimelineGraphic {
    static let columns = 64

    enum Mark: Character, CaseIterable {
        case paid = "#"
        case trial = "-"
        case grace = "="
        case refunded = "x"
        case none = "."
        /// A run or a lapse begins and ends within one column. Otherwise it would be invisible.
        case mixed = "+"

        var words: String {
            switch self {
            case .paid: "paid"
            case .trial: "free trial"
            case .grace: "grace"
            case .refunded: "refunded"
            case .none: "nothing"
            case .mixed: "less than a column of either"
            }
        }
    }

    private struct Piece {
        let start: Int64
        let end: Int64
        let mark: Mark
    }

    let start: Int64
    let end: Int64
    private let pieces: [Piece]
    private let isEndless: Bool
    private let now: Int64

    /// nil: there is nothing to draw, or a date is out of range.
    init?(_ purchases: [Timeline.Purchase], now: Int64) {
        let dates = purchases.flatMap { [$0.start, $0.end, $0.transaction.expiresDate].compactMap { $0 } } + [now]
        // Within these bounds the products of lengths and columns fit into 64 bits.
        guard let first = purchases.map(\.start).min(), let last = dates.max(), let earliest = dates.min(),
            earliest >= 0,
            last < 253_402_300_800_000, first < last
        else { return nil }
        start = first
        end = last
        self.now = now
        isEndless = purchases.contains { $0.hadUntil == nil }
        var pieces: [Piece] = []
        for purchase in purchases { pieces += Self.pieces(of: purchase, upTo: last) }
        self.pieces = pieces
    }

    private static func pieces(of purchase: Timeline.Purchase, upTo last: Int64) -> [Piece] {
        let end = purchase.end ?? last
        if purchase.fate == .refunded { return [Piece(start: purchase.start, end: end, mark: .refunded)] }
        let had = min(purchase.hadUntil ?? last, end)
        let paid = min(purchase.transaction.expiresDate ?? had, had)
        return [
            Piece(start: purchase.start, end: paid, mark: purchase.isFreeTrial ? .trial : .paid),
            Piece(start: max(paid, purchase.start), end: had, mark: .grace),
        ].filter { $0.start < $0.end }
    }

    var line: String {
        String((0..<Self.columns).map { mark(of: $0).rawValue }) + (isEndless ? ">" : "")
    }

    /// Only for marks that the line contains.
    var legend: String {
        let line = line
        return Mark.allCases.filter { line.contains($0.rawValue) }.map { "\($0.rawValue) \($0.words)" }
            .joined(separator: "   ")
    }

    /// The line below, which marks the current time.
    var pointer: String? {
        guard (start...end).contains(now) else { return nil }
        let column = min(Int((now - start) * Int64(Self.columns) / (end - start)), Self.columns - 1)
        // The text is on the side with more room.
        return column < Self.columns / 2
            ? String(repeating: " ", count: column) + "^ now"
            : String(repeating: " ", count: column - 4) + "now ^"
    }

    private func edge(_ column: Int) -> Int64 { start + (end - start) * Int64(column) / Int64(Self.columns) }

    private func mark(of column: Int) -> Mark {
        let (from, to) = (edge(column), edge(column + 1))
        guard from < to else { return .none }
        var lengths: [Mark: Int64] = [:]
        var edges = 0
        for piece in pieces where piece.start < to && from < piece.end {
            lengths[piece.mark, default: 0] += min(piece.end, to) - max(piece.start, from)
            if piece.mark != .refunded { edges += (piece.start > from ? 1 : 0) + (piece.end < to ? 1 : 0) }
        }
        let covered = [Mark.paid, .trial, .grace].reduce(0) { $0 + (lengths[$1] ?? 0) }
        lengths[.none] = max(0, to - from - lengths.values.reduce(0, +))
        // A beginning, an end and a gap: this column contains a whole lapse or a whole run.
        if edges > 1, covered > 0, lengths[.none] ?? 0 > 0 { return .mixed }
        // The order of the marks decides between equal lengths.
        return Mark.allCases.max { (lengths[$0] ?? 0, -order($0)) < (lengths[$1] ?? 0, -order($1)) } ?? .none
    }

    private func order(_ mark: Mark) -> Int { Mark.allCases.firstIndex(of: mark) ?? 0 }
}

extension Timeline.Purchase {
    var isFreeTrial: Bool { transaction.offer?.discount == Text(AppleWord.freeTrial) }
}
