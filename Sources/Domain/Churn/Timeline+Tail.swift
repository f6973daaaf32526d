// The tail of a long life: its last notices, counted as if the life began with them.
//
// What is new usually changes what the last periods count, and nothing of the periods before. So the tail is counted
// twice, without what is new and with it, by the same rules as a whole life. The difference of the two is the difference
// of the whole life, if the periods before add the same in both cases, and if the rules pass on the same to the periods
// behind the cut as in the whole life. Both hold if
//
// - no row has notices on both sides of the cut, and each row before the cut was bought earlier than each row behind it;
// - the first two rows behind the cut are plain: paid, without a failed payment, a refund or a commitment, and followed by
//   the next row before they end. Whatever came before the first of them, then nothing is open when the second ends: no
//   trial, no commitment, no lapse; the subscription is paid, and the monthly price of the second row is known;
// - all dates of what is before and of these two rows are over.
//
// What the tail itself gives for its first row is wrong (that the subscription was adopted with it, for instance), but it
// is the same wrong value both times.

internal import Notices
internal import SubscriptionHistory

extension Facts {
    /// The transaction of what is new.
    private var newTransaction: Transaction? {
        if case .one(let place) = news { notices[place].transaction } else { nil }
    }

    /// The first of three renewals in a row, about periods that began before this instant and before the period that is in
    /// the news: where the tail may begin. Notices that are not read yet are read if they are needed for it.
    /// - Returns: nil if there are no such renewals, or if counting the tail would take as long as counting the whole life.
    mutating func startOfTail(before instant: Int64) -> Int? {
        guard count >= Self.long, count <= Row.limit, news != .other else { return nil }
        if let tail = startOfReadTail(before: instant) { return tail }
        guard unread.count > 0 else { return nil }
        readUnread()
        return startOfReadTail(before: instant)
    }

    private func startOfReadTail(before instant: Int64) -> Int? {
        let new = newTransaction
        let end = min(instant, new?.purchaseDate ?? .max)
        var renewals = 0
        for place in (max(count / 2 - unread.count, 0)..<notices.count).reversed() {
            let isRenewal =
                notices[place].type == .didRenew && !notices[place].isRecovery
                && notices[place].transaction.map { $0.purchaseDate < end && $0.id != new?.id } ?? false
            renewals = isRenewal ? renewals + 1 : 0
            if renewals == 3 { return place }
        }
        return nil
    }

    /// The last dates of the notices before the tail.
    struct Head {
        var signed = Int64.min
        var purchased = Int64.min
        /// Of all dates at which something may change.
        var last = Int64.min
    }

    /// nil: a row has notices on both sides.
    func head(before tail: Int) -> Head? {
        var head = Head(purchased: unread.purchased, last: unread.changed)
        // A quick look first: two ids that are equal have the same bit.
        var bits: UInt64 = 0
        for place in tail..<notices.count {
            if let transaction = notices[place].transaction { bits |= transaction.id.bit }
        }
        for id in unread.ids.values where bits & id.bit != 0 && hasNotice(of: id, from: tail) { return nil }
        for place in 0..<tail {
            guard let transaction = notices[place].transaction else { continue }
            head.purchased = max(head.purchased, transaction.purchaseDate)
            head.last = max(head.last, transaction.version.signedDate, transaction.revocationDate ?? .min)
            if bits & transaction.id.bit != 0, hasNotice(of: transaction.id, from: tail) { return nil }
        }
        head.signed = tail > 0 ? notices[tail - 1].signedDate : unread.last?.signedDate ?? .min
        head.last = max(head.last, head.signed, head.purchased)
        return head
    }

    private func hasNotice(of id: RowId, from tail: Int) -> Bool {
        for place in tail..<notices.count where notices[place].transaction?.id == id { return true }
        return false
    }
}

extension RowId {
    fileprivate var bit: UInt64 {
        switch self {
        case .number(let number): 1 << (number & 63)
        case .text(let number): 1 << UInt64(number & 63)
        }
    }
}

extension Timeline {
    /// - Returns: the day on which the third row of the tail begins: all numbers of this day and later ones belong to the
    ///   tail. nil: the tail may count otherwise than the whole life.
    mutating func dayOfTail(_ head: Facts.Head) -> Int64? {
        guard rows.count > 2, isPlain(0), isPlain(1), head.purchased < rows[0].transaction.purchaseDate else {
            return nil
        }
        // Even if the payment for the first row came late, the row began before it ended and before the second one.
        let signed = max(head.signed, facts.notices[Int(rows[0].lastNotice)].signedDate)
        guard signed < rows[0].expires, signed <= rows[1].transaction.purchaseDate else { return nil }
        var last = head.last
        for row in 0..<2 {
            last = max(last, rows[row].transaction.purchaseDate)
            for place in notices(of: rows[row]) {
                last = max(last, facts.notices[place].signedDate)
                if let version = facts.notices[place].transaction?.version { last = max(last, version.signedDate) }
            }
        }
        let day = ledger.day(of: rows[2].start)
        return ledger.day(of: last) < day ? day : nil
    }

    @inline(__always) private func isPlain(_ place: Int) -> Bool {
        !rows[place].isFree && !rows[place].isCommitment && !rows[place].isRevoked && failures[place] == nil
            && rows[place].start < rows[place].expires && rows[place + 1].start <= rows[place].expires
    }
}
