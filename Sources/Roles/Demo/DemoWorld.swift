// What the demo is a demo of.

import Platform
import ReadAPI
import Simulation

/// The make-believe App Store, its time, and where that ends.
struct DemoWorld: Sendable {
    let store: MakeBelieveStore
    let clock: StoreClock
    /// Where the stories end. Time ends there as well: nobody would be told to renew any more, and all would expire.
    let end: Int64
    /// Beyond it the store's time does not run; nil: nothing holds it before the end.
    let present: (@Sendable () -> Int64)?

    private let elapsed: @Sendable () -> Duration

    private static let dayMilliseconds: Int64 = 86_400_000
    /// A year and what it takes to see one renewed; less than Kafka's topics keep.
    static let pastDays: Int64 = 390
    /// In memory. Longer than anybody looks on, and within the life of the store's certificates.
    static let futureDays: Int64 = 3650 - pastDays
    /// With Kafka, where they pass as slowly as in life: as long as the certificate of ingest holds.
    static let daysWithKafka: Int64 = 30
    private static let daysPerSecond = 3.0
    /// Some hundred subscriptions within the first half minute, and not more than a small machine signs and verifies.
    private static let subscribersPerDay: Int64 = 10
    /// Real customers mostly pay and stay; so many troubles as here are rare.
    private static let livelier: [Story: Int] = [
        .steady: 100, .graceRecovered: 60, .graceLost: 30, .retryRecovered: 60, .retryLost: 60, .refunded: 40,
    ]

    /// Of a thousand subscribers: whose story is about asking for the money back.
    private static let refundsPerMille = 60
    /// Their endings are written: where Apple decides by what is answered, they would be answered in vain.
    private static let decidedBefore: [Story] = [
        .refunded, .refundedProrated, .refundReversed, .refundDeclined, .refundOfEarlierPeriod, .refundedThenRenewed,
        .familyPurchaserRefunded, .commitmentRefundOfEarlierPeriod, .commitmentRefunded, .consumableRefunded,
    ]

    /// - Parameters:
    ///   - asksForRefunds: an API takes answers to refund requests, and Apple decides by them.
    ///   - elapsed: on a clock that never jumps.
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

    /// For the read API: who may use what is asked in the store's time, which the records are of. Copies age as their host does:
    /// what Kafka deletes it deletes by the clock on the wall.
    var readAPITime: ReadAPITime {
        ReadAPITime(now: { [clock] in clock.now }, wall: WallClock.milliseconds, elapsed: elapsed)
    }

    /// How its time passes.
    enum Pace: Equatable {
        case running(daysPerSecond: Double)
        /// It has reached the time on the wall, and goes on with it.
        case present
        case ended

        var words: String {
            switch self {
            case .running(let days): "\(rounded(days)) days a second"
            case .present: "now at the present"
            case .ended: "no stories are left"
            }
        }
    }

    /// Within it time counts as that of the wall.
    private static let presentMilliseconds: Int64 = 60_000

    /// - Parameter daysPerSecond: as measured.
    func pace(at storeTime: Int64, daysPerSecond: Double) -> Pace {
        if storeTime >= end { return .ended }
        if let present, storeTime > present() - Self.presentMilliseconds { return .present }
        return .running(daysPerSecond: daysPerSecond)
    }
}
