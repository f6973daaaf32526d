// Counts of rows: how each row was entered, what was paid, and what became of it.

internal import Notices

/// How a subscription entered one of its rows.
struct Entry: Equatable {
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
    /// One entry for each row.
    func entries(_ originalTransactionId: TransactionId) -> [Entry] {
        var entries: [Entry] = []
        entries.reserveCapacity(rows.count)
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
        return entries
    }

    private func kind(ofEntry place: Int, hadAccess: Bool, _ originalTransactionId: TransactionId) -> Entry.Kind {
        let row = rows[place]
        guard place > 0 else {
            let transaction = row.transaction
            let isNew =
                transaction.purchaseDate == transaction.originalPurchaseDate
                || facts.transactionId(transaction.id) == originalTransactionId
                || row.isInitialBuy
            return isNew && !transaction.continuesAnother ? .started : .adopted
        }
        if let failure = failures[place - 1], failure.decision?.outcome == .recovered {
            return .recovered(
                !hadAccess ? .retryRecovered : failure.grace != nil ? .graceRecovered : .earlyRecovered)
        }
        guard hadAccess else { return .resubscribed }
        return row.isRenewal ? .renewed : .switched
    }

    private func mrr(_ place: Int, _ kind: Entry.Kind, hadAccess: Bool) -> Int64 {
        let row = rows[place]
        guard !row.isFree, let price = row.transaction.price else { return 0 }
        if row.isCommitment { return min(price, limitMRR) }
        var from = row.transaction.purchaseDate
        // The payment came late, for a period that had begun.
        if case .recovered = kind, hadAccess, let due = failures[place - 1]?.due { from = min(from, due) }
        return monthly(price, from: from, to: row.smallestExpiresDate)
    }

    // MARK: Entered and paid

    func postRows(_ entries: [Entry], to ledger: inout Ledger) {
        for (place, entry) in entries.enumerated() {
            let start = rows[place].start
            // Everything about a failed payment is counted under the row whose payment failed.
            ledger.post(entry.kind.counter, at: start, under: entry.isRecovery ? place - 1 : place)
            if !rows[place].isFree { postPayment(place, entry, at: start, to: &ledger) }
            if place > 0, entry.kind != .resubscribed, let change = change(ofPlan: place, entries) {
                ledger.post(change, at: start, under: place)
            }
        }
    }

    private func postPayment(_ place: Int, _ entry: Entry, at start: Int64, to ledger: inout Ledger) {
        ledger.post(.charged, at: start, under: place)
        if let price = rows[place].transaction.price {
            ledger.post(.revenue, price, at: start, under: place)
            if entry.isRecovery { ledger.post(.recoveredRevenue, price, at: start, under: place) }
        } else {
            ledger.post(.unpriced, at: start, under: place)
        }
    }

    /// nil: product and plan are the same as those of the row before.
    private func change(ofPlan place: Int, _ entries: [Entry]) -> ChurnCounter? {
        guard !isSamePlan(place, place - 1) else { return nil }
        let (row, before) = (rows[place], rows[place - 1])
        if row.cameByUpgrade { return .upgraded }
        if isDowngradeAskedFor(before, to: row) { return .downgraded }
        let (old, new) = (entries[place - 1].mrr, entries[place].mrr)
        guard old != 0, new != 0, old != new, isSameCurrency(place, place - 1) else { return .crossgraded }
        return new > old ? .upgraded : .downgraded
    }

    func isSameCurrency(_ left: Int, _ right: Int) -> Bool {
        facts.parts[rows[left].transaction.parts].currency == facts.parts[rows[right].transaction.parts].currency
    }

    /// From the customer's latest request on the row before.
    private func isDowngradeAskedFor(_ before: Row, to row: Row) -> Bool {
        let requests = before.notices.lazy.map { facts.notices[$0] }
        guard
            let last = requests.last(where: { $0.type == .didChangeRenewalPref || $0.type == .offerRedeemed }),
            last.subtype == .downgrade, let info = last.info
        else { return false }
        let wanted = facts.parts[row.transaction.parts]
        let product = before.isCommitment && info.commitmentProduct != 0 ? info.commitmentProduct : info.product
        let plan = before.isCommitment && info.commitmentPlan != 0 ? info.commitmentPlan : info.plan
        return product == wanted.product && (plan == 0 || plan == wanted.plan)
    }

    // MARK: Refunded

    func postRefunds(to ledger: inout Ledger) {
        for place in rows.indices where !rows[place].refunds.isEmpty {
            let row = rows[place]
            if row.cameToBeReplaced(by: next(after: place)) {
                postNet(row, count: nil, amount: .upgradeRefundedAmount, to: &ledger)
                continue
            }
            for refund in row.refunds {
                ledger.post(.refunded, at: refund.date, under: row)
                ledger.post(.refundedAmount, row.amount(refund), at: refund.date, under: row)
                guard let reversal = refund.reversal else { continue }
                ledger.post(.refundReversed, at: reversal, under: row)
                ledger.post(.refundReversedAmount, row.amount(refund), at: reversal, under: row)
            }
            if !row.isFree, let last = row.refunds.last, last.reversal == nil {
                ledger.post(.chargedRefunded, at: row.start, under: row)
                ledger.post(.chargedRefundedAmount, row.amount(last), at: row.start, under: row)
            }
        }
        for row in oneTime { postNet(row, count: .oneTimeRefunded, amount: .oneTimeRefundedAmount, to: &ledger) }
    }

    /// Counts refunds and subtracts their reversals.
    private func postNet(_ row: Row, count: ChurnCounter?, amount: ChurnCounter, to ledger: inout Ledger) {
        for refund in row.refunds {
            if let count { ledger.post(count, at: refund.date, under: row) }
            ledger.post(amount, row.amount(refund), at: refund.date, under: row)
            guard let reversal = refund.reversal else { continue }
            if let count { ledger.post(count, -1, at: reversal, under: row) }
            ledger.post(amount, -row.amount(refund), at: reversal, under: row)
        }
    }

    // MARK: Asked for

    func postRequests(to ledger: inout Ledger) {
        for row in rows.indices {
            var hasRequested = false
            for place in rows[row].notices {
                let date = facts.notices[place].signedDate
                switch facts.notices[place].type {
                case .didChangeRenewalStatus:
                    guard let isOn = turnsRenewal(facts.notices[place], rows[row]) else { continue }
                    ledger.post(isOn ? .renewalTurnedOn : .renewalTurnedOff, at: date, under: row)
                case .consumptionRequest where !hasRequested:
                    hasRequested = true
                    ledger.post(.refundRequested, at: date, under: row)
                case .refundDeclined: ledger.post(.refundDeclined, at: date, under: row)
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
