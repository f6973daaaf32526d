// The notifications of half a year, in the mix that rows measure, in the order in which they arrive.

import KafkaTestKit
import Log

/// What notifications of the mix are about. The mix is the same in all rows.
enum MixKind: CaseIterable, Sendable {
    case renewal, change, failure, refund, repetition

    /// How many of twenty notifications are of this kind.
    var ofTwenty: Int {
        switch self {
        case .renewal: 12
        case .change, .failure: 2
        case .refund: 1
        case .repetition: 3
        }
    }

    private var name: String {
        switch self {
        case .renewal: "renewals"
        case .change: "status changes"
        case .failure: "failed payments"
        case .refund: "refunds"
        case .repetition: "repetitions"
        }
    }

    static var words: String { allCases.map { "\($0.ofTwenty * 5) % \($0.name)" }.joined(separator: ", ") }

    /// The renewal after this period could not be paid.
    /// - Parameter record: what Apple says of the period.
    static func failure(_ record: [UInt8], graceUntil end: Int64) -> [UInt8] {
        changed(
            record, #""notificationType":"DID_RENEW","subtype":null"#,
            #""notificationType":"DID_FAIL_TO_RENEW","subtype":"GRACE_PERIOD""#, #""autoRenewStatus":1"#,
            #""autoRenewStatus":1,"isInBillingRetryPeriod":true,"gracePeriodExpiresDate":\#(end)"#)
    }

    /// The period was paid back.
    static func refund(_ record: [UInt8], at moment: Int64) -> [UInt8] {
        changed(
            record, #""notificationType":"DID_RENEW""#, #""notificationType":"REFUND""#, #""quantity":1"#,
            #""quantity":1,"revocationDate":\#(moment),"revocationReason":0"#)
    }

    /// The customer has chosen what follows.
    static func change(_ record: [UInt8]) -> [UInt8] {
        changed(
            record, #""notificationType":"DID_RENEW","subtype":null"#,
            #""notificationType":"DID_CHANGE_RENEWAL_PREF","subtype":"DOWNGRADE""#)
    }

    private static func changed(_ record: [UInt8], _ pairs: String...) -> [UInt8] {
        var text = String(decoding: record, as: UTF8.self)
        for place in stride(from: 0, to: pairs.count, by: 2) {
            precondition(text.contains(pairs[place]), "the template has \(pairs[place])")
            text = text.replacing(pairs[place], with: pairs[place + 1])
        }
        return Array(text.utf8)
    }
}

/// Ten notifications about each of many subscriptions, of which a year is known before. They come in ten rounds: in each round
/// every subscription has one, in a scattered order. A period is renewed a day before it ends, so no timer is ever due: all
/// outputs are caused by notifications.
struct Lives: Sendable {
    /// What one subscription hears in one round.
    struct Step: Sendable {
        let kind: MixKind
        /// For subscription 0.
        let text: [UInt8]
        /// When the round begins.
        let at: Int64
    }

    enum Choice {
        case mix
        /// A renewal, and then nothing but repetitions of it.
        case repeated
    }

    /// Two kinds of lives, which take turns.
    private static let tracks = 2
    private static let rounds = 10

    let subscriptions: Int
    /// When the twelfth periods end.
    let end: Int64
    /// The steps of both tracks in each round, one beside the other.
    let steps: [Step]

    /// - Parameter end: long enough ago that half a year has passed since.
    init(_ choice: Choice = .mix, of subscriptions: Int, end: Int64) {
        self.subscriptions = subscriptions
        self.end = end
        switch choice {
        case .mix:
            steps = Self.mix(end)
            for kind in MixKind.allCases {
                precondition(steps.count { $0.kind == kind } == kind.ofTwenty, "the lives have the mix")
            }
        case .repeated: steps = Self.repeated(end)
        }
    }

    var count: Int { subscriptions * Self.rounds }

    func subscription(_ n: Int) -> Int { scattered(n % subscriptions, of: subscriptions) }
    /// Index of the n-th notification's step.
    func step(_ n: Int) -> Int { n / subscriptions * Self.tracks + subscription(n) % Self.tracks }
    /// Later than that of each notification before.
    func timestamp(_ n: Int) -> Int64 { steps[step(n)].at + Int64(n % subscriptions) }

    private static let day: Int64 = 86_400_000

    private static func repeated(_ end: Int64) -> [Step] {
        let year = Months(end: end)
        let rounds = [year.renewal(0)] + (1..<Int64(rounds)).map { year.again(0, days: $0) }
        return rounds.flatMap { [$0, $0] }
    }

    private static func mix(_ end: Int64) -> [Step] {
        let year = Months(end: end)
        let changed = year.end(of: 0) + 10 * day
        let change = Step(
            kind: .change, text: MixKind.change(year.record(0, told: changed, wanted: "two")), at: changed)
        let refunded = year.end(of: 2) + 10 * day
        let refund = Step(
            kind: .refund, text: MixKind.refund(year.record(2, told: refunded), at: refunded), at: refunded)
        let failed = year.end(of: 4) - 2 * day
        let failure = Step(
            kind: .failure, text: MixKind.failure(year.record(3, told: failed), graceUntil: failed + period / 2),
            at: failed)
        return [
            year.renewal(0), year.renewal(0), change, change, year.renewal(1), year.renewal(1),
            year.again(1, days: 5), year.again(1, days: 5), year.renewal(2), year.renewal(2),
            refund, year.again(2, days: 10), year.renewal(3), year.renewal(3), failure, failure,
            year.renewal(4), year.renewal(4), year.renewal(5), year.renewal(5),
        ]
    }

    /// The months after the year that is known.
    private struct Months {
        /// When the twelfth period ends.
        let end: Int64

        /// When the period ends that was known before a month.
        func end(of month: Int) -> Int64 { end + Int64(month) * period }

        /// The period of a month begins a day before the last one ends.
        func record(_ month: Int, told: Int64, wanted: String = "one") -> [UInt8] {
            Notifications.record(
                row: Notifications.periods + month, from: end(of: month) - day, to: end(of: month + 1), told: told,
                wanted: wanted)
        }

        func renewal(_ month: Int) -> Step {
            let told = end(of: month) - day
            return Step(kind: .renewal, text: record(month, told: told), at: told)
        }

        /// The same bytes again, days later.
        func again(_ month: Int, days: Int64) -> Step {
            Step(kind: .repetition, text: renewal(month).text, at: end(of: month) + days * day)
        }
    }
}

/// Makes the notifications of lives, one after the other.
struct LifeRecords {
    private struct Form {
        var value: [UInt8]
        let idPlaces: [Int]
        let tokenPlaces: [Int]
        let marketPlaces: Notifications.MarketPlaces

        init(_ text: [UInt8]) {
            value = text
            idPlaces = Notifications.places(of: "2000000000000000", in: text)
            tokenPlaces = Notifications.places(of: Notifications.token, in: text)
            marketPlaces = Notifications.MarketPlaces(text)
        }
    }

    private let lives: Lives
    private var forms: [Form]
    private var current = 0
    private(set) var key = Notifications.key
    private(set) var timestamp: Int64 = 0
    private(set) var subscription = 0
    var value: [UInt8] { forms[current].value }

    init(_ lives: Lives) {
        self.lives = lives
        forms = lives.steps.map { Form($0.text) }
    }

    mutating func make(_ n: Int) {
        subscription = lives.subscription(n)
        current = lives.step(n)
        timestamp = lives.timestamp(n)
        let id = 2_000_000_000_000_000 + subscription
        Notifications.write(id, digits: Notifications.idDigits, at: 0, in: &key)
        write(id, &forms[current])
    }

    private func write(_ id: Int, _ form: inout Form) {
        for place in form.idPlaces {
            Notifications.write(id, digits: Notifications.idDigits, at: place, in: &form.value)
        }
        for place in form.tokenPlaces { Notifications.writeToken(of: subscription, at: place, in: &form.value) }
        Notifications.writeMarket(of: subscription, at: form.marketPlaces, in: &form.value)
    }

    var partition: Int32 { Partitioner.partition(of: key.span, count: workerPartitions) }
}
