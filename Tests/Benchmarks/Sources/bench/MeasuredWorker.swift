// The workers that rows measure, and their differences.

import ChurnWorker
import Contract
import Entitlements
import EntitlementsWorker
import JSON
import Log
import Runtime
import Telemetry
import Zone

enum MeasuredWorker: String, Sendable {
    case entitlements, churn

    private static let app = "perennial/1.0.0"

    func processor(_ names: Names) -> any Processor {
        switch self {
        case .entitlements:
            EntitlementsProcessor(
                names, rules: benchRules, partitions: workerPartitions, app: Self.app,
                metrics: EntitlementsMetrics(Metrics()))
        case .churn:
            ChurnProcessor(
                names, zone: .utc, partitions: workerPartitions, app: Self.app, metrics: ChurnMetrics(Metrics()))
        }
    }

    /// The state of subscription 0, whose twelfth period ends then.
    func state(end: Int64) -> [UInt8] {
        switch self {
        case .entitlements: entitlementsState(end: end)
        case .churn: churnState(end: end)
        }
    }

    /// When the timer of such a subscription is due: entitlements change when the leeway has ended, churn counts change with the
    /// period.
    func due(end: Int64) -> Int64 {
        switch self {
        case .entitlements: end + 3_600_000
        case .churn: end
        }
    }
}

func entitlementsState(end: Int64) -> [UInt8] {
    state(after: Notifications.history(end: end), from: end - Int64(Notifications.periods) * period)
}

/// What the worker keeps after these records, of which each begins a period.
func state(after records: [[UInt8]], from start: Int64) -> [UInt8] {
    var teller = SubscriptionTeller(benchRules, .production)
    var json = JSONDocument()
    var kept: [UInt8]?
    for (number, text) in records.enumerated() {
        guard (try? json.read(text.span)) != nil else { preconditionFailure("the template is not JSON") }
        teller.read(json)
        let isTold = withKept(kept, &teller) { teller in
            teller.mergeNews() && tell(&teller, at: start + Int64(number) * period)
        }
        precondition(isTold, "each period is news")
        kept = Array(teller.stateBytes)
    }
    return kept ?? []
}

/// Loads what is kept, which stays where it is while `body` uses it.
func withKept(_ kept: [UInt8]?, _ teller: inout SubscriptionTeller, _ body: (inout SubscriptionTeller) -> Bool) -> Bool
{
    guard let kept else { return teller.load(nil, format: SubscriptionTeller.format) && body(&teller) }
    return kept.withUnsafeBufferPointer { teller.load($0, format: SubscriptionTeller.format) && body(&teller) }
}

func tell(_ teller: inout SubscriptionTeller, at clock: Int64) -> Bool {
    Notifications.key.withUnsafeBufferPointer {
        teller.tell($0, at: clock, SubscriptionTeller.Origin(partition: 11, offset: 100_000))
    }
}

/// Records of a worker's changelog, as written by a worker that knows every subscription.
struct Changelog {
    private(set) var key: [UInt8]
    private(set) var value: [UInt8]
    private let stateStart: Int
    private let tokenPlaces: [Int]
    private let marketPlaces: Notifications.MarketPlaces

    init(_ worker: MeasuredWorker, end: Int64 = Notifications.usualEnd) {
        // An entry: the key's space, then the key.
        key = [1] + Notifications.key
        // The format of the state, one timer (its kind and its due time), and the state.
        let head = [1, 1, 0] + withUnsafeBytes(of: worker.due(end: end).littleEndian) { Array($0) }
        stateStart = head.count
        value = head + worker.state(end: end)
        tokenPlaces = Notifications.places(of: Notifications.token, in: value)
        marketPlaces = Notifications.MarketPlaces(value)
    }

    /// The state alone.
    var state: [UInt8] { Array(value[stateStart...]) }

    mutating func make(_ subscription: Int) {
        Notifications.write(2_000_000_000_000_000 + subscription, digits: Notifications.idDigits, at: 1, in: &key)
        for place in tokenPlaces { Notifications.writeToken(of: subscription, at: place, in: &value) }
        Notifications.writeMarket(of: subscription, at: marketPlaces, in: &value)
    }

    func partition(of count: Int32) -> Int32 {
        Partitioner.partition(of: key.span.extracting(droppingFirst: 1), count: count)
    }
}
