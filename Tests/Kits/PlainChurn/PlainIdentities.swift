// Identities that the cells of any input must meet.

public struct PlainIdentities: Sendable {
    /// The sum of the cells of all chains.
    public private(set) var cells: [String: PlainCell] = [:]

    public init() {}

    public mutating func add(_ others: [String: PlainCell]) {
        for (key, other) in others {
            cells[key, default: PlainCell()].counts.merge(other.counts) { $0 + $1 }
            cells[key, default: PlainCell()].money.merge(other.money) { $0 + $1 }
        }
    }

    /// For "now and at the end of every day".
    public var days: [String] { Set(cells.keys.map(Self.day(of:))).sorted() }

    /// - Parameter standings: of all chains whose cells were added, at the clock of the cells.
    /// - Returns: a line for each identity that does not hold now.
    public func violations(standings: [PlainStanding]) -> [String] {
        var lines = runningSums(standings, through: nil)
        lines += failuresDecided()
        for (key, cell) in cells.sorted(by: { $0.key < $1.key }) { lines += outcomes(in: cell, key) }
        return lines
    }

    /// - Parameter standings: of all chains whose cells were added, at the end of the day.
    public func violations(standings: [PlainStanding], atEndOf day: String) -> [String] {
        runningSums(standings, through: day)
    }

    /// "Running sums of the deltas = chains in PAID, FREE, GRACE, RETRY; of `atRiskDelta` = MRR in GRACE and RETRY; of all
    /// `mrr*` = MRR of paying chains", for every key; "over all keys, rows begun = the eight entries".
    private func runningSums(_ standings: [PlainStanding], through day: String?) -> [String] {
        let sums = sumsByKey(through: day)
        var byKey: [String: [PlainStanding]] = [:]
        for standing in standings {
            if let key = standing.key { byKey[key, default: []].append(standing) }
        }
        var lines: [String] = []
        for key in Set(sums.keys).union(byKey.keys).sorted() {
            let sum = sums[key] ?? PlainCell()
            let here = byKey[key] ?? []
            let stocks = ["PAID": "activeDelta", "FREE": "trialDelta", "GRACE": "graceDelta", "RETRY": "retryDelta"]
            for (state, name) in stocks.sorted(by: { $0.key < $1.key }) {
                let chains = Int64(here.count { $0.state == state })
                lines += Self.compare("\(name) \(key)", sum.counts[name] ?? 0, chains)
            }
            lines += Self.compare(
                "atRiskDelta \(key)", sum.money["atRiskDelta"] ?? 0, here.reduce(0) { $0 + $1.atRisk })
            let revenue = sum.money.filter { $0.key.hasPrefix("mrr") }.values.reduce(0, +)
            lines += Self.compare("mrr \(key)", revenue, here.reduce(0) { $0 + $1.mrr })
        }
        let entries = sums.values.reduce(0) { $0 + Self.sum(Self.entries, of: $1) }
        return lines + Self.compare("rows begun", entries, standings.reduce(0) { $0 + $1.rowsBegun })
    }

    /// "Over all days `failed` = recoveries + `retryLost` + `retryCancelled` + `retryOther` + `failedOpen`", for every key.
    private func failuresDecided() -> [String] {
        let decided = ["retryLost", "retryCancelled", "retryOther", "failedOpen"] + Self.recoveries
        return sumsByKey(through: nil).sorted { $0.key < $1.key }.flatMap { key, sum in
            Self.compare("failed \(key)", sum.counts["failed"] ?? 0, Self.sum(decided, of: sum))
        }
    }

    /// "In each cell `trials` and `commitmentsStarted` = their outcomes + open."
    private func outcomes(in cell: PlainCell, _ key: String) -> [String] {
        let trials = ["trialsConverted", "trialsEnded", "trialsOpen"]
        let commitments = ["Completed", "Switched", "Defaulted", "Refunded", "Open"].map { "commitments" + $0 }
        return Self.compare("trials \(key)", cell.counts["trials"] ?? 0, Self.sum(trials, of: cell))
            + Self.compare(
                "commitmentsStarted \(key)", cell.counts["commitmentsStarted"] ?? 0, Self.sum(commitments, of: cell))
    }

    private static let recoveries = ["earlyRecovered", "graceRecovered", "retryRecovered"]
    private static let entries = ["started", "adopted", "renewed", "switched", "resubscribed"] + recoveries

    private static func sum(_ names: [String], of cell: PlainCell) -> Int64 {
        names.reduce(0) { $0 + (cell.counts[$1] ?? 0) }
    }

    private static func compare(_ what: String, _ found: Int64, _ expected: Int64) -> [String] {
        found == expected ? [] : ["\(what): \(found), not \(expected)"]
    }

    /// The sums by key without the day.
    private func sumsByKey(through day: String?) -> [String: PlainCell] {
        var sums = PlainIdentities()
        for (key, cell) in cells {
            if let day, Self.day(of: key) > day { continue }
            sums.add([PlainLedger.withoutDay(key): cell])
        }
        return sums.cells
    }

    private static func day(of key: String) -> String {
        String(key.split(separator: "|", omittingEmptySubsequences: false)[1])
    }
}
