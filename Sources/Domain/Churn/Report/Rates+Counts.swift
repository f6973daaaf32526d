// Rates of counts, which do not depend on currencies.

/// The days that are final for a rate, and their sums.
struct MatureDays {
    /// The recovery counters, and the time that each covers in days.
    static let recoveries: [(days: Int64, counter: ChurnCounter)] = [
        (1, .recoveredWithin1), (3, .recoveredWithin3), (7, .recoveredWithin7), (16, .recoveredWithin16),
        (28, .recoveredWithin28), (60, .recoveredWithin60), (90, .recoveredWithin90),
    ]

    struct Part {
        var numerator: Int64 = 0
        var denominator: Int64 = 0
        var counted = 0
        var leftOut = 0

        mutating func add(_ day: Tally, isMature: Bool, _ numerator: ChurnCounter, of denominator: ChurnCounter) {
            guard isMature else { return leftOut += 1 }
            counted += 1
            self.numerator &+= day[numerator]
            self.denominator &+= day[denominator]
        }
    }

    private(set) var grace = Part()
    /// One for each entry of `recoveries`.
    private(set) var recovered = [Part](repeating: Part(), count: recoveries.count)
    private let firstYounger: [Int64]

    init(_ horizon: Horizon) { firstYounger = Self.recoveries.map { horizon.firstDayYounger(thanDays: $0.days) } }

    mutating func add(_ tally: Tally, on day: Int64) {
        grace.add(tally, isMature: tally[.failedOpen] == 0, .graceRecovered, of: .graceEntered)
        for (index, recovery) in Self.recoveries.enumerated() {
            recovered[index].add(tally, isMature: day < firstYounger[index], recovery.counter, of: .failed)
        }
    }
}

extension Rate {
    public static let lapses: [ChurnCounter] = [
        .lapsedVoluntary, .lapsedBilling, .lapsedPrice, .lapsedUnavailable, .lapsedRefund, .lapsedOther,
    ]

    /// - Parameters:
    ///   - within: sums over all days.
    ///   - paying: the number at the start.
    static func ofCounts(_ within: Tally, paying: Int64, areOver: Bool, _ mature: MatureDays) -> [Rate] {
        let time: [Doubt] = areOver ? [] : [.daysNotOver]
        let lapsed = within.sum(lapses)
        func churn(_ name: String, _ title: String, _ formula: String, _ value: Int64, _ more: [Doubt] = []) -> Rate {
            Rate(
                name: name, title: title, formula: "\(formula) / Paying(a)", ratio: Ratio(value, of: paying),
                doubts: time + more)
        }
        func open(_ counter: ChurnCounter, _ doubt: Doubt) -> [Doubt] { within[counter] == 0 ? [] : [doubt] }

        func involuntary(_ name: String, _ title: String, _ counter: ChurnCounter) -> Rate {
            var rate = churn(name, title, counter.name, within[counter], open(.retryOpen, .retryOpen))
            rate.show(.retryOpen, within)
            return rate
        }
        var trials = Rate(
            name: "trialConversion", title: "trial conversion",
            formula: "trialsConverted / (trialsConverted + trialsEnded)",
            ratio: Ratio(within[.trialsConverted], of: within[.trialsConverted] &+ within[.trialsEnded]),
            doubts: time + open(.trialsOpen, .trialsOpen))
        trials.show(.trialsOpen, within)
        var commitments = Rate(
            name: "commitmentDefaultRate", title: "commitments defaulted",
            formula: "commitmentsDefaulted / commitmentsStarted",
            ratio: Ratio(within[.commitmentsDefaulted], of: within[.commitmentsStarted]),
            doubts: time + open(.commitmentsOpen, .commitmentsOpen))
        commitments.show(.commitmentsOpen, within)

        return [
            churn("grossChurn", "gross churn", "sum of lapsed*", lapsed),
            churn("voluntaryChurn", "voluntary churn", "lapsedVoluntary", within[.lapsedVoluntary]),
            involuntary("involuntaryChurnProvisional", "involuntary churn, provisional", .lapsedBilling),
            involuntary("involuntaryChurnFinal", "involuntary churn, final", .retryLost),
            churn("netChurn", "net churn", "(sum of lapsed* - regained)", lapsed &- within[.regained]),
            Rate(
                name: "billingFailureRate", title: "billing failures", formula: "failed / (failed + renewed)",
                ratio: Ratio(within[.failed], of: within[.failed] &+ within[.renewed]), doubts: time),
            Rate(
                name: "graceRecovery", title: "recovered in grace",
                formula: "graceRecovered / graceEntered, days whose failedOpen is 0", mature.grace, doubts: time),
        ]
            + zip(MatureDays.recoveries, mature.recovered).map { recovery, part in
                Rate(
                    name: "recoveryWithin\(recovery.days)",
                    title: "recovered in \(recovery.days) day\(recovery.days == 1 ? "" : "s")",
                    formula: "\(recovery.counter.name) / failed, days whose failures are all older than "
                        + "\(recovery.days) x 24 h", part, doubts: [])
            } + [
                trials,
                Rate(
                    name: "refundRate", title: "charges refunded", formula: "chargedRefunded / charged",
                    ratio: Ratio(within[.chargedRefunded], of: within[.charged]), doubts: time),
                commitments,
            ]
    }

    private init(name: String, title: String, formula: String, _ part: MatureDays.Part, doubts: [Doubt]) {
        self.init(
            name: name, title: title, formula: formula, ratio: Ratio(part.numerator, of: part.denominator),
            doubts: doubts)
        days = Days(counted: part.counted, leftOut: part.leftOut)
    }

    private mutating func show(_ counter: ChurnCounter, _ within: Tally) {
        beside = counter
        besideValue = within[counter]
    }
}

extension Stock {
    static func paying(_ tally: Tally) -> Int64 { tally[.activeDelta] &+ tally[.graceDelta] }

    static func ofCounts(_ start: Tally, _ end: Tally) -> [Stock] {
        func running(_ name: String, _ title: String, _ counter: ChurnCounter) -> Stock {
            Stock(
                name: name, title: title, formula: "running sum of \(counter.name)", start: start[counter],
                end: end[counter])
        }
        return [
            running("active", "Active", .activeDelta), running("inGrace", "InGrace", .graceDelta),
            Stock(
                name: "paying", title: "Paying", formula: "Active + InGrace", start: paying(start), end: paying(end)),
            running("inRetry", "InRetry", .retryDelta), running("trials", "Trials", .trialDelta),
        ]
    }
}
