// What the demo simulates.

import Platform
import ReadAPI
import Simulation
import Simulator

/// The simulated App Store, its time, and its end.
struct DemoWorld: Sendable {
    let store: MakeBelieveStore
    let clock: StoreClock
    /// Where the stories end. Time stops there as well: without further renewals, all subscriptions would expire.
    let end: Int64
    /// The store's time does not pass this time; nil: it runs to the end.
    let present: (@Sendable () -> Int64)?

    private let elapsed: @Sendable () -> Duration

    private static let dayMilliseconds: Int64 = 86_400_000
    /// A year and enough to see a yearly renewal; less than the retention of the topics.
    static let pastDays: Int64 = 390
    /// In memory. Longer than anybody watches, and within the validity of the store's certificates.
    static let futureDays: Int64 = 3650 - pastDays
    /// With Kafka, where these days pass in real time: as long as the certificate of ingest is valid.
    static let daysWithKafka: Int64 = 30
    private static let daysPerSecond = 3.0
    /// Some hundred subscriptions within the first half minute, and not more than a small machine can sign and verify.
    private static let subscribersPerDay: Int64 = 10
    /// More troubles than usual, so that the demo shows them: most real customers pay and stay.
    private static let livelier: [Story: Int] = [
        .steady: 100, .graceRecovered: 60, .graceLost: 30, .retryRecovered: 60, .retryLost: 60, .refunded: 40,
    ]

    /// Of a thousand subscribers, those whose story contains a refund request.
    private static let refundsPerMille = 60
    /// Stories with a fixed decision. They are left out where Apple decides by the answers.
    private static let decidedBefore: [Story] = [
        .refunded, .refundedProrated, .refundReversed, .refundDeclined, .refundOfEarlierPeriod, .refundedThenRenewed,
        .familyPurchaserRefunded, .commitmentRefundOfEarlierPeriod, .commitmentRefunded, .consumableRefunded,
    ]

    /// - Parameters:
    ///   - asksForRefunds: an API accepts answers to refund requests, and Apple decides by them.
    ///   - elapsed: from a monotonic clock.
    init(
        _ place: DemoTopics.Place, asksForRefunds: Bool = false, elapsed: @escaping @Sendable () -> Duration
    ) throws(DemoFault) {
        let begin = WallClock.milliseconds() - Self.pastDays * Self.dayMilliseconds
        var days = Self.pastDays
        switch place {
        case .memory:
            days += Self.futureDays
            present = nil
        case .kafka:
            days += Self.daysWithKafka
            present = { WallClock.milliseconds() }
        }
        let end = begin + days * Self.dayMilliseconds
        self.end = end
        let seed = UInt64.random(in: 0...UInt64(Int.max))
        var simulation = Simulation.Configuration(
            seed: seed, subscribers: Int(days * Self.subscribersPerDay), apps: MakeBelieveStore.apps, start: begin,
            end: end)
        simulation.weights.merge(Self.livelier) { _, livelier in livelier }
        if asksForRefunds {
            simulation.refundsPerMille = Self.refundsPerMille
            for story in Self.decidedBefore { simulation.weights[story] = 0 }
        }
        var delivery = Delivery.Configuration(seed: seed)
        delivery.duplicatesPerMille = 20
        delivery.forgeriesPerMille = 20
        do throws(MakeBelieveStore.Fault) {
            store = try MakeBelieveStore(simulation, delivery, decidesByAnswers: asksForRefunds)
        } catch {
            throw DemoFault(description: error.words)
        }
        self.elapsed = elapsed
        let present = present
        clock = StoreClock(
            start: begin, speed: Self.daysPerSecond * 86_400, latest: { min(present?() ?? .max, end) },
            elapsed: elapsed)
    }

    /// For the read API: access is judged by the store's time, because records use it. Copies age by the real time, because Kafka
    /// deletes by the real time.
    var readAPITime: ReadAPITime {
        ReadAPITime(now: { [clock] in clock.now }, wall: WallClock.milliseconds, elapsed: elapsed)
    }

    /// How fast its time passes.
    enum Pace: Equatable {
        case running(daysPerSecond: Double)
        /// It has reached the real time, and follows it.
        case present
        case ended

        var words: String {
            switch self {
            case .running(let days): "\(rounded(days)) days a second"
            case .present: "now in real time"
            case .ended: "no stories are left"
            }
        }
    }

    /// A time within this distance counts as the real time.
    private static let presentMilliseconds: Int64 = 60_000

    /// - Parameter daysPerSecond: as measured.
    func pace(at storeTime: Int64, daysPerSecond: Double) -> Pace {
        if storeTime >= end { return .ended }
        if let present, storeTime > present() - Self.presentMilliseconds { return .present }
        return .running(daysPerSecond: daysPerSecond)
    }
}
