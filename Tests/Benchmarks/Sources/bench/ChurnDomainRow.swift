// The domain of churn alone, over what notifications are about.

import CLoops
import KafkaTestKit
import Platform

private let rounds = 5
private let records = 400_000
/// Microseconds of CPU per notification of the mix.
private let most = 10.0
/// Heap allocations per notification of the mix.
private let mostAllocations = 0.1
/// As many times as long with 260 periods as with 12: all notices and numbers that are kept are checked.
private let mostGrowth = 3.0

func measureChurnDomain(_ report: inout Report) async throws {
    var (mix, few, many, allocations): ([Double], [Double], [Double], [Double]) = ([], [], [], [])
    for round in 1...rounds {
        let figures = try await measureRun(["worker-churn", "mix", "\(records)"])
        mix.append(figures["cpu"] / Double(records))
        allocations.append(figures["allocations"] / Double(records))
        few.append(try await measureRun(["worker-churn", "12", "\(records)"])["cpu"] / Double(records))
        many.append(try await measureRun(["worker-churn", "260", "\(records / 10)"])["cpu"] / Double(records / 10))
        printMessage("churn-domain \(round)/\(rounds)")
    }
    report.note(
        "CPU microseconds per notification (getrusage of the process), median [min-max] of \(rounds) runs. The mix: "
            + "\(MixKind.words); 12 periods are known"
    )
    report.judge("the mix", "\(figures(mix)), against \(most)", ratio: median(mix) / most, .atMost(1))
    report.judge(
        "heap allocations per notification of the mix", figures(allocations),
        ratio: median(allocations), .atMost(mostAllocations))
    report.judge(
        "a renewal with 260 periods known against 12", "\(figures(many)) against \(figures(few))",
        ratio: median(many) / median(few), .atMost(mostGrowth))
}

/// - Parameter kind: `mix`, or a number of periods.
func runChurnDomain(_ kind: String, records: Int) throws -> RunFigures {
    let notifications = MixedNotifications(periods: Int(kind))
    var work = ChurnWork(after: notifications.history)
    func run(_ count: Int) throws -> Int {
        var news = 0
        for number in 0..<count {
            let place = number % notifications.values.count
            if try work.hear(notifications.values[place], at: notifications.clocks[place]) != nil { news += 1 }
        }
        return news
    }
    // The buffers reach their sizes.
    _ = try run(1_000)
    let before = bench_allocations()
    let meter = Meter()
    meter.start()
    let news = try run(records)
    meter.stop()
    let allocations = bench_allocations() - before
    guard news * 100 == records * notifications.newsPerCent else { throw NotInTime("news of each kind", limit: .zero) }
    var figures = RunFigures(try requireSpending(meter, within: .zero))
    figures["allocations"] = Double(allocations)
    return figures
}
