// The domain of entitlements alone, over what notifications are about.

import CLoops
import Contract
import Entitlements
import JSON
import KafkaTestKit
import Platform
import SubscriptionHistory

private let rounds = 5
private let records = 400_000
/// Microseconds of CPU per notification of the mix.
private let most = 8.0
/// The same for a renewal.
private let mostForRenewal = 6.0
/// Heap allocations per notification of the mix: none, except when a buffer grows for the first time.
private let mostAllocations = 0.01
/// As many times as long with 260 periods as with 12.
private let mostGrowth = 3.0

func measureDomain(_ report: inout Report) async throws {
    var (mix, few, many, allocations): ([Double], [Double], [Double], [Double]) = ([], [], [], [])
    for round in 1...rounds {
        let figures = try await measureRun(["worker-domain", "mix", "\(records)"])
        mix.append(figures["cpu"] / Double(records))
        allocations.append(figures["allocations"] / Double(records))
        few.append(try await measureRun(["worker-domain", "12", "\(records)"])["cpu"] / Double(records))
        many.append(try await measureRun(["worker-domain", "260", "\(records / 4)"])["cpu"] / Double(records / 4))
        printMessage("domain \(round)/\(rounds)")
    }
    report.note(
        "CPU microseconds per notification (getrusage of the process), median [min-max] of \(rounds) runs. The mix: "
            + "\(MixKind.words); 12 periods are known"
    )
    report.judge("the mix", "\(figures(mix)), against \(most)", ratio: median(mix) / most, .atMost(1))
    report.judge(
        "a renewal", "\(figures(few)), against \(mostForRenewal)", ratio: median(few) / mostForRenewal, .atMost(1))
    report.judge(
        "heap allocations per notification of the mix", figures(allocations),
        ratio: median(allocations), .atMost(mostAllocations))
    report.judge(
        "a renewal with 260 periods known against 12", "\(figures(many)) against \(figures(few))",
        ratio: median(many) / median(few), .atMost(mostGrowth))
}

/// Notifications of one subscription, each about the same history.
struct MixedNotifications {
    /// The records of the periods that are known.
    let history: [[UInt8]]
    private(set) var values: [[UInt8]] = []
    private(set) var clocks: [Int64] = []

    /// - Parameter periods: how many are known; nil: twelve, and the notifications are those of the mix.
    init(periods: Int?) {
        let end = Notifications.usualEnd
        history = Notifications.history(end: end, periods: periods ?? Notifications.periods)
        var renewal = Notifications()
        renewal.make(0, of: 0)
        add(renewal.value, renewal.timestamp)
        guard periods == nil else { return }
        let last = (row: history.count - 1, from: end - period, to: end)
        var change = Notifications(.change)
        change.make(1, of: 0)
        for kind in MixKind.allCases {
            for number in 1...kind.ofTwenty {
                switch kind {
                case .renewal where number == 1: break
                case .renewal: add(renewal.value, renewal.timestamp)
                case .change: add(change.value, change.timestamp)
                case .failure:
                    let record = Notifications.record(row: last.row, from: last.from, to: last.to, told: end - 1)
                    add(MixKind.failure(record, graceUntil: end + period / 2), end - 1)
                case .refund:
                    let now = end - period / 2
                    let record = Notifications.record(row: last.row, from: last.from, to: last.to, told: now)
                    add(MixKind.refund(record, at: now), now)
                case .repetition: add(history[history.count - number], end - 1)
                }
            }
        }
    }

    private mutating func add(_ value: [UInt8], _ clock: Int64) {
        values.append(value)
        clocks.append(clock)
    }

    /// How many of a hundred notifications have news.
    var newsPerCent: Int { values.count == 1 ? 100 : 100 - MixKind.repetition.ofTwenty * 5 }
}

/// The work for each of them, about the same kept bytes.
private struct DomainMix {
    private let notifications: MixedNotifications
    private let kept: [UInt8]

    init(_ notifications: MixedNotifications) {
        self.notifications = notifications
        let history = notifications.history
        kept = state(after: history, from: Notifications.usualEnd - Int64(history.count) * period)
    }

    /// - Returns: the number of notifications that had news.
    func run(_ count: Int, _ teller: inout SubscriptionTeller, _ json: inout JSONDocument) throws -> Int {
        var news = 0
        for number in 0..<count {
            let place = number % notifications.values.count
            let value = notifications.values[place]
            try json.read(value.span)
            teller.read(json)
            if withKept(kept, &teller, { $0.mergeNews() && tell(&$0, at: notifications.clocks[place]) }) {
                let made = makeOutputs(&teller)
                if made.state > 0 { news += 1 }
            }
        }
        return news
    }
}

/// - Parameter kind: `mix`, or a number of periods.
func runDomain(_ kind: String, records: Int) throws -> RunFigures {
    let notifications = MixedNotifications(periods: Int(kind))
    let mix = DomainMix(notifications)
    var teller = SubscriptionTeller(benchRules, .production)
    var json = JSONDocument()
    // The buffers reach their sizes.
    _ = try mix.run(1_000, &teller, &json)
    let before = bench_allocations()
    let meter = Meter()
    meter.start()
    let news = try mix.run(records, &teller, &json)
    meter.stop()
    let allocations = bench_allocations() - before
    guard news * 100 == records * notifications.newsPerCent else { throw NotInTime("news of each kind", limit: .zero) }
    var figures = RunFigures(try requireSpending(meter, within: .zero))
    figures["allocations"] = Double(allocations)
    return figures
}
