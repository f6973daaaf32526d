// An answer and the purchase it is based on: events are derived from it.

internal import Notices
internal import Records
import SubscriptionHistory

/// The state of a subscription at an instant. Valid as long as its course is not changed.
struct Standing {
    let answer: Answer
    let row: Row
    /// The row before.
    let rowBefore: Row?
    let hasRowAfter: Bool
    /// Apple retries a failed payment.
    let isRetrying: Bool
    let leeway: Int64
    let account: TextPlace?
    let plan: Mark
    let offer: Mark
    let pending: Mark
    /// When the last month of a commitment ends, if this purchase is that month.
    let lastMonthEnd: Int64?
}

extension Course {
    func standing(at instant: Int64) -> Standing {
        let place = place(at: instant)
        let row = rows[place]
        let answer = answer(at: instant)
        return Standing(
            answer: answer, row: row, rowBefore: place > 0 ? rows[place - 1] : nil,
            hasRowAfter: place + 1 < rows.count,
            isRetrying: answer.state.isTried && info(of: row).map(row.isRetrying) ?? false, leeway: rules.leeway,
            account: history.texts[answer.appAccountToken], plan: plan(of: answer), offer: offer(of: answer),
            pending: pending(of: answer), lastMonthEnd: lastMonthEnd(of: row))
    }

    private func plan(of answer: Answer) -> Mark {
        var mark = Mark()
        mark.add(history.texts.bytes(answer.productId))
        mark.add(answer.billingPlan?.bytes)
        return mark
    }

    private func offer(of answer: Answer) -> Mark {
        var mark = Mark()
        if let offer = answer.offer { mark.add(OfferType.word(of: offer.type)) } else { mark.addNone() }
        mark.add(answer.offer.flatMap { history.texts.bytes($0.identifier) })
        mark.add(answer.offer.flatMap { history.texts.bytes($0.discount) })
        return mark
    }

    private func pending(of answer: Answer) -> Mark {
        var mark = Mark()
        mark.add(history.texts.bytes(answer.pendingProductId))
        mark.add(history.texts.bytes(answer.pendingBillingPlan))
        return mark
    }

    private func lastMonthEnd(of row: Row) -> Int64? {
        guard row.isCommitment, let commitment = commitment(of: row), let period = commitment.period,
            period >= commitment.of ?? 12
        else { return nil }
        return row.expires
    }
}

extension Row {
    var expires: Int64? { if case .period(let until, _) = term { until } else { nil } }
}

extension Standing {
    /// Within a commitment `autoRenew` is about the next payment only, which is due in any case.
    var renews: Bool? { row.isCommitment ? answer.commitment?.renews : answer.autoRenew }

    /// What is published by this standing.
    /// - Parameters:
    ///   - before: the state that was published before.
    ///   - events: the events of this change.
    func told(after before: Told?, _ events: borrowing Scratch<EntitlementEvent>, answer hash: UInt64) -> Told {
        let isSamePurchase = before?.purchase == row.id
        func isTold(_ kind: EntitlementEvent.Kind, before wasTold: Bool) -> Bool {
            isSamePurchase && (wasTold || events.values.contains { $0.kind == kind })
        }
        return Told(
            answer: hash, account: account, state: answer.state, reason: answer.reason, access: answer.access,
            purchase: row.id, plan: plan, offer: offer, pending: pending, expires: row.expires,
            renews: renews ?? before?.renews, priceConsent: answer.priceConsent, isRetrying: isRetrying,
            isCommitment: row.isCommitment, lastMonthEnd: lastMonthEnd,
            isRecovered: isTold(.recovered, before: before?.isRecovered ?? false),
            isCompleted: isTold(.commitmentCompleted, before: before?.isCompleted ?? false))
    }
}
