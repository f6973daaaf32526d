// Counts as a subscription moves between states: stocks, lapses, and the bridge of the monthly revenue.

internal import Contract
internal import SubscriptionHistory

extension Timeline {
    /// A subscription in one state, with what the counters need to know of it.
    private struct Standing {
        var row: Int
        var state: State
        var isPaying: Bool
        /// The price per month.
        var mrr: Int64
    }

    /// What the loop over the states remembers.
    private struct Memory {
        var hasPaid = false
        /// True if the customer has paid since access last began.
        var hasPaidInRun = false
        /// True if the customer has lapsed since the last payment.
        var hasLapsed = false
    }

    mutating func postStates() {
        var before: Standing?
        var memory = Memory()
        for number in visits.indices {
            let visit = visits[number]
            let isPaying = visit.state == .paid || visit.state == .grace && !rows[visit.row].isFree
            let now = Standing(
                row: visit.row, state: visit.state, isPaying: isPaying, mrr: isPaying ? entries[visit.row].mrr : 0)
            postStocks(from: before, to: now, at: visit.from)
            postLapse(from: before, to: now, &memory, at: visit.from)
            postRevenue(from: before, to: now, memory, at: visit.from)
            if visit.state == .retry {
                post(.retryEntered, at: visit.from, under: visit.row)
                if failures[visit.row]?.decision == nil {
                    post(.retryOpen, at: visit.from, under: visit.row)
                }
            }
            postUnpaidGrace(number)
            if !visit.state.hasAccess { memory.hasPaidInRun = false }
            if isPaying {
                memory.hasPaid = true
                memory.hasPaidInRun = true
                memory.hasLapsed = false
            }
            before = now
        }
    }

    // MARK: Stocks

    private mutating func postStocks(from before: Standing?, to now: Standing, at instant: Int64) {
        // Usually it stays where it is: nothing would be added.
        let stays = before.map { $0.state.stock == now.state.stock && hasSameParts($0.row, now.row) } ?? false
        if !stays {
            if let before, let stock = before.state.stock { post(stock, -1, at: instant, under: before.row) }
            if let stock = now.state.stock { post(stock, at: instant, under: now.row) }
        }
        // A free row has no monthly revenue: no check is needed.
        if let before, before.state.isAtRisk {
            post(.atRiskDelta, -entries[before.row].mrr, at: instant, under: before.row)
        }
        if now.state.isAtRisk { post(.atRiskDelta, entries[now.row].mrr, at: instant, under: now.row) }
    }

    /// Counts a grace period that is over, unless the payment succeeded in the end.
    private mutating func postUnpaidGrace(_ number: Int) {
        let visit = visits[number]
        guard visit.state == .grace, let end = visit.to else { return }
        if number + 1 < visits.count {
            let next = visits[number + 1]
            if next.row != visit.row, entries[next.row].isRecovery { return }
        }
        post(
            .unpaidGrace, rounded(1_000, times: length(from: visit.from, to: end), over: millisecondsPerDay), at: end,
            under: visit.row)
    }

    // MARK: Lapses

    private mutating func postLapse(
        from before: Standing?, to now: Standing, _ memory: inout Memory, at instant: Int64
    ) {
        if now.isPaying {
            if memory.hasLapsed { post(.regained, at: instant, under: now.row) }
        } else if let before, before.isPaying, let counter = now.state.lapse {
            post(counter, at: instant, under: before.row)
            memory.hasLapsed = true
        }
    }

    // MARK: Monthly revenue

    private mutating func postRevenue(
        from before: Standing?, to now: Standing, _ memory: Memory, at instant: Int64
    ) {
        let (old, new) = (before?.mrr ?? 0, now.mrr)
        if let before, old > 0, new > 0 {
            postMove(from: before, to: now, at: instant)
        } else if let before, old > 0 {
            post(now.state.lossOfRevenue, -old, at: instant, under: before.row)
        } else if new > 0 {
            post(gain(from: before, to: now, memory), new, at: instant, under: now.row)
        }
    }

    private mutating func postMove(from before: Standing, to now: Standing, at instant: Int64) {
        if !hasSameParts(before.row, now.row) {
            post(.mrrMoved, -before.mrr, at: instant, under: before.row)
            guard isSameCurrency(before.row, now.row) else {
                post(.mrrMoved, now.mrr, at: instant, under: now.row)
                return
            }
            post(.mrrMoved, before.mrr, at: instant, under: now.row)
        }
        let difference = now.mrr - before.mrr
        post(difference > 0 ? .mrrExpansion : .mrrContraction, difference, at: instant, under: now.row)
    }

    /// The first condition that is true.
    private func gain(from before: Standing?, to now: Standing, _ memory: Memory) -> ChurnCounter {
        if !memory.hasPaid { return now.row == 0 && entries[0].kind == .adopted ? .mrrAdopted : .mrrNew }
        if before?.row == now.row, before?.state == .lapsed(.refund) { return .mrrRefund }
        if memory.hasPaidInRun { return .mrrExpansion }
        if let before, before.row != now.row, entries[now.row].isRecovery, !rows[now.row - 1].isFree {
            return .mrrRecovery
        }
        return .mrrReactivation
    }
}

extension State {
    fileprivate var stock: ChurnCounter? {
        switch self {
        case .paid: .activeDelta
        case .free: .trialDelta
        case .grace: .graceDelta
        case .retry: .retryDelta
        case .lapsed: nil
        }
    }

    fileprivate var isAtRisk: Bool { self == .grace || self == .retry }

    /// How a paying customer is counted in this state; nil: the customer did not lapse.
    fileprivate var lapse: ChurnCounter? {
        switch self {
        case .paid, .free, .grace: nil
        case .retry, .lapsed(.billing): .lapsedBilling
        case .lapsed(.voluntary): .lapsedVoluntary
        case .lapsed(.price): .lapsedPrice
        case .lapsed(.unavailable): .lapsedUnavailable
        case .lapsed(.refund): .lapsedRefund
        case .lapsed(.other): .lapsedOther
        }
    }

    /// The counter for the lost revenue of a paying customer.
    fileprivate var lossOfRevenue: ChurnCounter {
        switch self {
        case .paid, .free, .grace: .mrrContraction
        case .retry, .lapsed(.billing): .mrrBilling
        case .lapsed(.voluntary): .mrrVoluntary
        case .lapsed(.price): .mrrPrice
        case .lapsed(.refund): .mrrRefund
        case .lapsed(.unavailable), .lapsed(.other): .mrrOther
        }
    }
}
