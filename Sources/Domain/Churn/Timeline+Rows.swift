// Counts of rows: how each row was entered, what was paid, and what became of it.

internal import SubscriptionHistory

/// How a subscription entered one of its rows.
struct Entry {
    enum Kind: Equatable {
        case started, adopted, renewed, switched, resubscribed
        /// The payment before this row had failed.
        case recovered(ChurnCounter)

        var counter: ChurnCounter {
            switch self {
            case .started: .started
            case .adopted: .adopted
            case .renewed: .renewed
            case .switched: .switched
            case .resubscribed: .resubscribed
            case .recovered(let counter): counter
            }
        }
    }

    var kind: Kind
    var hadAccess: Bool
    /// The price per month.
    var mrr: Int64

    var isRecovery: Bool {
        if case .recovered = kind { return true }
        return false
    }
}

extension Timeline {
    /// Sets one entry for each row.
    mutating func enterRows(_ originalTransactionId: PurchaseId) {
        entries.removeAll()
        var before: State?
        var visit = 0
        for place in rows.indices {
            let hadAccess = before?.hasAccess ?? false
            let kind = kind(ofEntry: place, hadAccess: hadAccess, originalTransactionId)
            entries.append(Entry(kind: kind, hadAccess: hadAccess, mrr: mrr(place, kind, hadAccess: hadAccess)))
            while visit < visits.count, visits[visit].row == place {
                before = visits[visit].state
                visit += 1
            }
        }
    }

    // Inlined: a call would copy all of the timeline for each row.

    @inline(__always) private func kind(
        ofEntry place: Int, hadAccess: Bool, _ originalTransactionId: PurchaseId
    ) -> Entry.Kind {
        guard place > 0 else {
            let transaction = rows[place].transaction
            let isNew =
                transaction.purchaseDate == transaction.originalPurchaseDate
                || facts.purchaseId(transaction.id) == originalTransactionId
                || rows[place].isInitialBuy
            return isNew && !transaction.continuesAnother ? .started : .adopted
        }
        if let failure = failures[place - 1], failure.decision?.outcome == .recovered {
            return .recovered(
                !hadAccess ? .retryRecovered : failure.grace != nil ? .graceRecovered : .earlyRecovered)
        }
        guard hadAccess else { return .resubscribed }
        return rows[place].isRenewal ? .renewed : .switched
    }

    @inline(__always) private func mrr(_ place: Int, _ kind: Entry.Kind, hadAccess: Bool) -> Int64 {
        guard !rows[place].isFree, let price = rows[place].transaction.price else { return 0 }
        if rows[place].isCommitment { return min(price, limitMRR) }
        var from = rows[place].transaction.purchaseDate
        // The payment came late, for a period that had begun.
        if case .recovered = kind, hadAccess, let due = failures[place - 1]?.due { from = min(from, due) }
        return monthly(price, from: from, to: rows[place].smallestExpiresDate)
    }

    // MARK: Entered and paid

    mutating func postRows() {
        for place in rows.indices {
            let entry = entries[place]
            let start = rows[place].start
            // Everything about a failed payment is counted under the row whose payment failed.
            post(entry.kind.counter, at: start, under: entry.isRecovery ? place - 1 : place)
            if !rows[place].isFree { postPayment(place, entry, at: start) }
            if place > 0, entry.kind != .resubscribed, !isSamePlan(place, place - 1) {
                post(change(ofPlan: place), at: start, under: place)
            }
        }
    }

    private mutating func postPayment(_ place: Int, _ entry: Entry, at start: Int64) {
        post(.charged, at: start, under: place)
        if let price = rows[place].transaction.price {
            post(.revenue, price, at: start, under: place)
            if entry.isRecovery { post(.recoveredRevenue, price, at: start, under: place) }
        } else {
            post(.unpriced, at: start, under: place)
        }
    }

    /// Product or plan are not those of the row before.
    private func change(ofPlan place: Int) -> ChurnCounter {
        let (row, before) = (rows[place], rows[place - 1])
        if row.cameByUpgrade { return .upgraded }
        if isDowngradeAskedFor(before, to: row) { return .downgraded }
        let (old, new) = (entries[place - 1].mrr, entries[place].mrr)
        guard old != 0, new != 0, old != new, isSameCurrency(place, place - 1) else { return .crossgraded }
        return new > old ? .upgraded : .downgraded
    }

    func isSameCurrency(_ left: Int, _ right: Int) -> Bool {
        parts(left).currency == parts(right).currency
    }

    /// From the customer's latest request on the row before.
    private func isDowngradeAskedFor(_ before: Row, to row: Row) -> Bool {
        var last: Int?
        for place in notices(of: before)
        where facts.notices[place].type == .didChangeRenewalPref || facts.notices[place].type == .offerRedeemed {
            last = place
        }
        guard let last, facts.notices[last].subtype == .downgrade, let info = facts.notices[last].info else {
            return false
        }
        let wanted = facts.parts[Int(row.transaction.parts)]
        let product = before.isCommitment && !info.commitmentProduct.isNone ? info.commitmentProduct : info.product
        let plan = before.isCommitment && !info.commitmentPlan.isNone ? info.commitmentPlan : info.plan
        return product == wanted.product && (plan.isNone || plan == wanted.plan)
    }

    // MARK: Refunded

    mutating func postRefunds() {
        for place in rows.indices where rows[place].isRefunded {
            let row = rows[place]
            if row.cameToBeReplaced(by: next(after: place)) {
                postNet(row, count: nil, amount: .upgradeRefundedAmount)
                continue
            }
            for number in row.refunds {
                let refund = refunds[number]
                post(.refunded, at: refund.date, under: row)
                post(.refundedAmount, row.amount(refund), at: refund.date, under: row)
                guard let reversal = refund.reversal else { continue }
                post(.refundReversed, at: reversal, under: row)
                post(.refundReversedAmount, row.amount(refund), at: reversal, under: row)
            }
            let last = refunds[row.refunds.upperBound - 1]
            if !row.isFree, last.reversal == nil {
                post(.chargedRefunded, at: row.start, under: row)
                post(.chargedRefundedAmount, row.amount(last), at: row.start, under: row)
            }
        }
        for place in oneTime.indices {
            postNet(oneTime[place], count: .oneTimeRefunded, amount: .oneTimeRefundedAmount)
        }
    }

    /// Counts refunds and subtracts their reversals.
    private mutating func postNet(_ row: Row, count: ChurnCounter?, amount: ChurnCounter) {
        for number in row.refunds {
            let refund = refunds[number]
            if let count { post(count, at: refund.date, under: row) }
            post(amount, row.amount(refund), at: refund.date, under: row)
            guard let reversal = refund.reversal else { continue }
            if let count { post(count, -1, at: reversal, under: row) }
            post(amount, -row.amount(refund), at: reversal, under: row)
        }
    }

    // MARK: Asked for

    mutating func postRequests() {
        for row in rows.indices {
            var hasRequested = false
            for place in notices(of: rows[row]) {
                let date = facts.notices[place].signedDate
                switch facts.notices[place].type {
                case .didChangeRenewalStatus:
                    guard let isOn = turnsRenewal(facts.notices[place], rows[row]) else { continue }
                    post(isOn ? .renewalTurnedOn : .renewalTurnedOff, at: date, under: row)
                case .consumptionRequest where !hasRequested:
                    hasRequested = true
                    post(.refundRequested, at: date, under: row)
                case .refundDeclined: post(.refundDeclined, at: date, under: row)
                default: break
                }
            }
        }
    }

    /// nil: it does not say. For a commitment this means the renewal of the whole: its months are billed in any case.
    private func turnsRenewal(_ notice: Notice, _ row: Row) -> Bool? {
        func meaning(_ status: Int64?) -> Bool? { status == 1 ? true : status == 0 ? false : nil }
        if row.isCommitment { return meaning(notice.info?.commitmentAutoRenewStatus) }
        switch notice.subtype {
        case .autoRenewEnabled: return true
        case .autoRenewDisabled: return false
        default: return meaning(notice.info?.autoRenewStatus)
        }
    }
}
