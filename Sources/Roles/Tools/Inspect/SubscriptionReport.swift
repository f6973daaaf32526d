// The report about one subscription.

import Contract
import Entitlements
import ReadAPI
import Records

struct SubscriptionReport: Sendable {
    /// The answer from the facts at one instant.
    struct Answer: Sendable {
        struct Change: Sendable {
            let at: Int64
            let entitlement: Entitlement
            /// Another purchase counts from here.
            let beginsPurchase: Bool
        }

        /// Grace, retry, expiry: no more changes follow without new notifications.
        static let limitChanges = 4

        let instant: Int64
        let entitlement: Entitlement
        /// Like a record of `entitlements`, without the members that depend on how the value was reached.
        let record: [UInt8]
        let basis: Timeline.Basis
        let purchases: [Timeline.Purchase]
        /// Changes that happen without new notifications.
        let changes: [Change]
        /// There are more changes than listed.
        let hasMoreChanges: Bool

        /// Its first purchase is in the future.
        var hasNotBegun: Bool { instant < basis.purchase.start }

        /// The purchase that follows at the end of this one's period. Later renewal info belongs to that purchase.
        var successor: Timeline.Purchase? {
            switch basis.rule {
            case .taken, .refunded, .owned, .passRuns, .passOver: nil
            case .upgraded, .paid, .renewalExpected, .ended: basis.next
            // A failed renewal still describes this period, even if the purchase that followed is known.
            case .failsEarly, .grace, .retry, .retryOver: basis.isInfoOfLater ? basis.next : nil
            }
        }

        init(_ timeline: Timeline, of id: String, _ environment: Contract.Environment, at instant: Int64) {
            self.instant = instant
            record = timeline.record(of: id, environment, at: instant)
            entitlement = timeline.entitlement(at: instant)
            basis = timeline.basis(at: instant)
            purchases = timeline.purchases
            var changes: [Change] = []
            var next = timeline.nextChange(after: instant)
            while let at = next, changes.count < Self.limitChanges {
                changes.append(
                    Change(
                        at: at, entitlement: timeline.entitlement(at: at),
                        beginsPurchase: purchases.contains { $0.start == at }))
                next = timeline.nextChange(after: at)
            }
            self.changes = changes
            hasMoreChanges = next != nil
        }
    }

    let id: String
    let environment: Contract.Environment
    /// The topic `notifications`.
    let topic: String
    let partition: Int32
    /// The offset after the last record that was read.
    let position: Int64
    /// The clock of the partition; nil: the partition is empty.
    let clock: Int64?
    /// The user gave the instant; it is not the clock.
    let isAsked: Bool
    /// nil: no purchase is known.
    let answer: Answer?
    let content: [ContentAnswer]
    /// In the order of the log.
    let told: [ToldNotification]
    /// The number of older notifications that are not in `told`.
    let olderCount: Int
    let unreadable: Int
    let published: PublishedValue?
    let agreement: Agreement
    /// Newest first; nil: it was not requested, or the topic does not exist.
    let history: [HistoryEntry]?
    /// The clock of this host.
    let now: Int64

    /// The answer is for an instant in the past, when less was known.
    var isPast: Bool {
        guard isAsked, let answer, let clock else { return false }
        return answer.instant < clock
    }

    /// The first notification with the facts of the answer.
    var decider: ToldNotification? {
        guard let answer else { return nil }
        let basis = answer.basis
        let transaction = basis.purchase.transaction
        switch basis.rule {
        case .taken, .refunded:
            return firstTold { $0.tells(transaction.id) { $0.revocationDate == transaction.revocationDate } }
        case .upgraded: return firstTold { $0.tells(transaction.id) { $0.isUpgraded } }
        case .owned, .passRuns, .passOver, .paid: return firstTold { $0.tells(transaction.id) }
        case .renewalExpected, .failsEarly, .grace, .retry, .retryOver, .ended:
            if basis.rule == .ended, let expiry = basis.expiry {
                return firstTold {
                    $0.type == AppleWord.expired.description && $0.signedDate == expiry.signedDate
                        && $0.tells(transaction.id)
                }
            }
            if answer.successor != nil { return firstTold { $0.tells(transaction.id) } }
            return firstTold { $0.tells(basis.decidedBy) }
        }
    }

    /// The notifications behind the text of `why`, in its order.
    var deciders: [ToldNotification] {
        let successor = answer.flatMap { $0.hasNotBegun ? nil : $0.successor }
        let follower = successor.flatMap { next in firstTold { $0.tells(next.transaction.id) } }
        guard let decider else { return [follower].compactMap { $0 } }
        return [decider] + [follower].compactMap { $0 }.filter { $0.offset != decider.offset }
    }

    /// Notifications may have arrived in any order, and more than once.
    private func firstTold(where isIt: (ToldNotification) -> Bool) -> ToldNotification? {
        told.filter(isIt).min { ($0.signedDate ?? .max, $0.offset) < ($1.signedDate ?? .max, $1.offset) }
    }
}

extension SubscriptionReport {
    init(
        id: String, topic: String, partition: Int32, position: Int64, fold: SubscriptionFold,
        published: PublishedValue?, history: [HistoryEntry]?,
        _ run: InspectRun
    ) {
        let timeline = Timeline(fold.facts(), run.rules)
        let clock = fold.clock
        let instant = run.query.instant ?? clock ?? run.now
        self.id = id
        environment = run.names.environment
        self.topic = topic
        self.partition = partition
        self.position = position
        self.clock = clock
        isAsked = run.query.instant != nil
        answer = timeline.map { Answer($0, of: id, run.names.environment, at: instant) }
        content =
            timeline.map { ContentAnswer.answers(run.query.published, $0.entitlement(at: instant), at: instant) }
            ?? []
        told = fold.told
        olderCount = fold.olderCount
        unreadable = fold.unreadable
        self.published = published
        self.history = history
        agreement = Agreement(published, fold, run.rules, id: id, run.names.environment)
        now = run.now
    }
}
