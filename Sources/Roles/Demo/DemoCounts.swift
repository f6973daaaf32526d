// What the churn worker has counted, read from its cells.

import Churn
import Contract
import JSON
import Notices

/// Adds up the last record of every cell, over all partitions. Takes the records of one topic; records of one key in order.
struct DemoCounts: ~Copyable {
    private struct Cell {
        var day: Int64
        var currency: Text
        /// Sums of the counters that are shown.
        var sums: Sums
    }

    /// More currencies do not fit on the screen.
    private static let limitCurrencies = 2
    private static let recoveries: [ChurnCounter] = [.earlyRecovered, .graceRecovered, .retryRecovered]
    private static let losses: [ChurnCounter] = [.mrrVoluntary, .mrrBilling, .mrrPrice, .mrrRefund, .mrrOther]

    private var cells: [[UInt8]: Cell] = [:]
    private var all = Sums()
    private var byCurrency: [Text: Sums] = [:]
    /// Only monthly revenue: nothing else is shown for a single day.
    private var byDay: [Int64: [Text: Sums]] = [:]
    private var json = JSONDocument()
    /// Records that could not be read. There should be none.
    private(set) var unreadable = 0

    /// Takes a record of `churn-cells`.
    mutating func take(cell value: [UInt8]?, key: [UInt8]) {
        var cell: Cell?
        if let value {
            guard let record = read(value) else {
                unreadable += 1
                return
            }
            cell = Cell(day: record.key.day.number, currency: record.key.parts.currency, sums: shown(of: record.sums))
        }
        if let old = cells[key] { add(old, times: -1) }
        if let cell { add(cell, times: 1) }
        cells[key] = cell
    }

    private mutating func read(_ value: [UInt8]) -> CellRecord? {
        do throws(JSONFault) { try json.read(value.span) } catch { return nil }
        guard json.kind(of: json.root) == .object else { return nil }
        return CellRecord(json)
    }

    /// A long demo has many cells, so only the part of a cell that is subtracted when it changes is kept.
    private func shown(of sums: Sums) -> Sums {
        var shown = Sums()
        for sum in sums.all where sum.counter.isShown { shown.add(sum.value, to: sum.counter) }
        return shown
    }

    private mutating func add(_ cell: Cell, times sign: Int64) {
        for sum in cell.sums.all {
            all.add(sign * sum.value, to: sum.counter)
            byCurrency[cell.currency, default: Sums()].add(sign * sum.value, to: sum.counter)
            guard sum.counter.isMonthlyRevenue else { continue }
            byDay[cell.day, default: [:]][cell.currency, default: Sums()].add(sign * sum.value, to: sum.counter)
        }
    }

    /// nil: nothing has been counted yet.
    func figures(today: CivilDay) -> DemoFigures? {
        guard !cells.isEmpty else { return nil }
        return DemoFigures(
            cells: cells.count, active: Int(all[.activeDelta]), trials: Int(all[.trialDelta]),
            inGrace: Int(all[.graceDelta]), inRetry: Int(all[.retryDelta]),
            recovered: Self.recoveries.reduce(0) { $0 + Int(all[$1]) }, failed: Int(all[.failed]),
            undecided: Int(all[.failedOpen]), bridges: largest.map { bridge($0, today: today) })
    }

    /// Sorted by paying customers, because amounts of different currencies cannot be compared.
    private var largest: [Text] {
        let paying = byCurrency.map { (currency: $0.key, count: $0.value[.activeDelta] + $0.value[.graceDelta]) }
        return paying.filter { $0.count > 0 }.sorted { ($1.count, $0.currency) < ($0.count, $1.currency) }
            .prefix(Self.limitCurrencies).map(\.currency)
    }

    private func bridge(_ currency: Text, today: CivilDay) -> RevenueBridge {
        func total(_ sums: Sums) -> Int64 {
            sums.all.reduce(0) { $0 + ($1.counter.isMonthlyRevenue ? $1.value : 0) }
        }
        let day = byDay[today.number]?[currency] ?? Sums()
        var bridge = RevenueBridge(currency: currency.description)
        bridge.start = total(byCurrency[currency] ?? Sums()) - total(day)
        bridge.new = day[.mrrNew]
        bridge.wonBack = day[.mrrReactivation] + day[.mrrRecovery]
        bridge.expansion = day[.mrrExpansion]
        bridge.contraction = day[.mrrContraction]
        bridge.churn = Self.losses.reduce(0) { $0 + day[$1] }
        bridge.other = day[.mrrMoved] + day[.mrrAdopted]
        return bridge
    }
}

extension ChurnCounter {
    fileprivate var isShown: Bool {
        switch self {
        case .failed, .failedOpen, .earlyRecovered, .graceRecovered, .retryRecovered: true
        default: isStock || isMonthlyRevenue
        }
    }
}
