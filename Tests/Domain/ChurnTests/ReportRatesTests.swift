import Churn
import Contract
import Testing

/// The numbers were worked out by hand from the cells above them, with the formulas of docs/how-to/read-churn-numbers.md.
@Suite struct `A rate` {
    private var cells = Cells()

    init() {
        // Before the reported days: the stocks begin with these.
        cells.write(
            "2026-10-01",
            [
                .activeDelta: 100, .graceDelta: 20, .retryDelta: 5, .trialDelta: 8, .atRiskDelta: 15_000,
                .mrrNew: 800_000, .mrrAdopted: 200_000,
            ])
        cells.write(
            "2026-11-02",
            [
                .renewed: 60, .failed: 10, .graceEntered: 8, .recoveredWithin1: 2, .recoveredWithin3: 4,
                .recoveredWithin7: 5, .recoveredWithin16: 6, .recoveredWithin28: 7, .recoveredWithin60: 7,
                .recoveredWithin90: 7, .charged: 80, .chargedRefunded: 2, .trials: 10, .trialsConverted: 6,
                .trialsEnded: 3, .trialsOpen: 1, .revenue: 900_000, .chargedRefundedAmount: 30_000,
            ])
        cells.write(
            "2026-11-10",
            [
                .graceRecovered: 6, .graceEntered: 2, .lapsedVoluntary: 5, .lapsedBilling: 4, .lapsedPrice: 1,
                .lapsedUnavailable: 1, .lapsedRefund: 2, .lapsedOther: 1, .regained: 3, .retryLost: 2, .retryOpen: 1,
                .commitmentsStarted: 4, .commitmentsDefaulted: 1, .commitmentsOpen: 2, .activeDelta: -8,
                .graceDelta: -3, .retryDelta: 2, .trialDelta: 1, .mrrNew: 90_000, .mrrAdopted: 10_000,
                .mrrExpansion: 20_000, .mrrContraction: -5_000, .mrrVoluntary: -30_000, .mrrBilling: -20_000,
                .mrrPrice: -4_000, .mrrRefund: -8_000, .mrrOther: -3_000, .mrrRecovery: 12_000,
                .mrrReactivation: 6_000, .atRiskDelta: -2_000,
            ])
        // Its failures are not decided, so it does not count for the rate of grace.
        cells.write("2026-11-20", [.failed: 5, .failedOpen: 2, .graceEntered: 4, .graceRecovered: 1, .renewed: 45])
    }

    @Test(
        arguments: [
            ("grossChurn", 14, 120, "0.116667"), ("voluntaryChurn", 5, 120, "0.041667"),
            ("involuntaryChurnProvisional", 4, 120, "0.033333"), ("involuntaryChurnFinal", 2, 120, "0.016667"),
            ("netChurn", 11, 120, "0.091667"), ("billingFailureRate", 15, 120, "0.125000"),
            ("graceRecovery", 6, 10, "0.600000"), ("recoveryWithin1", 2, 15, "0.133333"),
            ("recoveryWithin3", 4, 15, "0.266667"), ("recoveryWithin7", 5, 15, "0.333333"),
            ("recoveryWithin16", 6, 15, "0.400000"), ("recoveryWithin28", 7, 10, "0.700000"),
            ("recoveryWithin60", 0, 0, nil), ("recoveryWithin90", 0, 0, nil),
            ("trialConversion", 6, 9, "0.666667"), ("refundRate", 2, 80, "0.025000"),
            ("commitmentDefaultRate", 1, 4, "0.250000"),
        ] as [(String, Int64, Int64, String?)])
    func `of numbers is that of its formula`(
        name: String, numerator: Int64, denominator: Int64, value: String?
    ) throws {
        let rate = try #require(try cells.report().groups.first?.rate(name))
        #expect(rate.ratio == Ratio(numerator, of: denominator))
        #expect(rate.ratio.decimal(digits: 6) == value)
    }

    @Test(
        arguments: [
            // (90 + 20 + 6 + 12) / (5 + 30 + 20 + 4 + 8 + 3)
            ("quickRatio", 128_000, 70_000, "1.828571"),
            // 1000 - 5 - 65 + 12, and 20 more.
            ("grossRevenueRetention", 942_000, 1_000_000, "0.942000"),
            ("netRevenueRetention", 962_000, 1_000_000, "0.962000"),
            ("refundRateByAmount", 30_000, 900_000, "0.033333"),
        ] as [(String, Int64, Int64, String)])
    func `of money is that of its formula`(name: String, numerator: Int64, denominator: Int64, value: String) throws {
        let rate = try #require(try cells.report().groups.first?.money.first?.rate(name))
        #expect(rate.ratio == Ratio(numerator, of: denominator))
        #expect(rate.ratio.decimal(digits: 6) == value)
        #expect(rate.isApproximate == name.hasSuffix("Retention"))
    }

    @Test(
        arguments: [
            ("active", 100, 92), ("inGrace", 20, 17), ("paying", 120, 109), ("inRetry", 5, 7), ("trials", 8, 9),
        ] as [(String, Int64, Int64)])
    func `rests on stocks, running sums to both ends`(name: String, start: Int64, end: Int64) throws {
        let stock = try #require(try cells.report().groups.first?.stock(name))
        #expect((stock.start, stock.end) == (start, end))
    }

    @Test func `of revenue rests on stocks of one currency`() throws {
        let money = try #require(try cells.report().groups.first?.money.first)
        #expect("\(money.currency)" == "USD")
        #expect(money.stocks.map(\.name) == ["mrr", "arr", "atRiskMRR"])
        #expect(money.stocks.map(\.start) == [1_000_000, 12_000_000, 15_000])
        #expect(money.stocks.map(\.end) == [1_068_000, 12_816_000, 13_000])
    }

    /// Moved revenue is neither won nor lost, and adopted revenue is older than the log and not won now.
    @Test func `of growth leaves out what was moved and adopted`() throws {
        var cells = cells
        let before = try cells.report().groups.first?.money.first?.rate("quickRatio")?.ratio
        cells.write("2026-11-12", [.mrrMoved: -50_000, .mrrAdopted: 70_000])
        #expect(try cells.report().groups.first?.money.first?.rate("quickRatio")?.ratio == before)
    }

    @Test func `has its formula in the words of the counters it is made of`() throws {
        let group = try #require(try cells.report().groups.first)
        let names = Set(ChurnCounter.allCases.map(\.name))
        for rate in group.rates + group.money.flatMap(\.rates) {
            let words = rate.formula.split { !$0.isLetter && !$0.isNumber && $0 != "*" }
                .filter { $0.first?.isLowercase == true && $0.contains(where: \.isUppercase) }
            #expect(words.allSatisfy { names.contains(String($0)) }, "\(rate.formula)")
            #expect(rate.formula.contains(" / "), "\(rate.name)")
        }
    }

    @Test func `of nothing has no value`() throws {
        var cells = Cells()
        cells.write("2026-11-10", [.lapsedVoluntary: 1, .mrrVoluntary: -5])
        let group = try #require(try cells.report().groups.first)
        #expect(group.rate("grossChurn")?.ratio.decimal(digits: 6) == nil)
        #expect(group.rate("grossChurn")?.ratio.numerator == 1)
        #expect(group.money.first?.rate("grossRevenueRetention")?.ratio.decimal(digits: 6) == nil)
    }

    @Test(
        arguments: [
            (1, 8, 2, "0.12"), (3, 8, 2, "0.38"), (-1, 8, 2, "-0.12"), (1, -8, 2, "-0.12"), (1, 3, 0, "0"),
            (1, 2, 0, "0"), (3, 2, 0, "2"), (-1, 1000, 2, "0.00"), (2, 3, 6, "0.666667"), (7, 1, 1, "7.0"),
            (.max, 1, 6, "9223372036854775807.000000"), (.min, 1, 1, "-9223372036854775808.0"), (0, -5, 1, "0.0"),
        ] as [(Int64, Int64, Int, String)])
    func `is rounded once, half to even`(numerator: Int64, denominator: Int64, digits: Int, text: String) {
        #expect(Ratio(numerator, of: denominator).decimal(digits: digits) == text)
    }

    // MARK: Numbers that are not final

    @Test func `is provisional while its days are not over, or what it counts is not decided`() throws {
        let group = try #require(try cells.report().groups.first)
        func doubts(_ name: String) -> [Rate.Doubt]? { group.rate(name)?.doubts }
        #expect(doubts("grossChurn") == [] && doubts("netChurn") == [] && doubts("refundRate") == [])
        #expect(doubts("involuntaryChurnProvisional") == [.retryOpen])
        #expect(doubts("involuntaryChurnFinal") == [.retryOpen])
        #expect(doubts("trialConversion") == [.trialsOpen])
        #expect(doubts("commitmentDefaultRate") == [.commitmentsOpen])
        for name in ["involuntaryChurnProvisional", "involuntaryChurnFinal"] {
            #expect(group.rate(name)?.beside == .retryOpen && group.rate(name)?.besideValue == 1)
        }
        #expect(group.rate("trialConversion")?.besideValue == 1)
        #expect(group.rate("commitmentDefaultRate")?.besideValue == 2)
        // The 15th of December is not over.
        #expect(try cells.report("2026-11-01", "2026-12-15").groups.first?.rate("grossChurn")?.doubts == [])
        let later = try #require(try cells.report("2026-11-01", "2026-12-16").groups.first)
        #expect(later.rate("grossChurn")?.doubts == [.daysNotOver])
        #expect(later.money.first?.rate("quickRatio")?.doubts == [.daysNotOver])
        #expect(later.rate("trialConversion")?.doubts == [.daysNotOver, .trialsOpen])
    }

    @Test func `of involuntary churn is final once Apple has stopped billing`() throws {
        var cells = cells
        cells.write("2026-11-10", [.retryLost: 1, .retryOpen: -1], partition: 1)
        let group = try #require(try cells.report().groups.first)
        #expect(group.rate("involuntaryChurnProvisional")?.isProvisional == false)
        #expect(group.rate("involuntaryChurnProvisional")?.ratio == Ratio(4, of: 120))
        #expect(group.rate("involuntaryChurnFinal")?.isProvisional == false)
        #expect(group.rate("involuntaryChurnFinal")?.ratio == Ratio(3, of: 120))
    }

    /// The clock is at noon of the 15th of December: a failure of the 15th of November may be younger than 30 times 24 hours.
    @Test(
        arguments: [
            ("recoveryWithin1", 30, 0), ("recoveryWithin7", 30, 0), ("recoveryWithin16", 28, 2),
            ("recoveryWithin28", 16, 14), ("recoveryWithin60", 0, 30),
        ] as [(String, Int, Int)])
    func `of recovery waits until all failures of a day are old enough`(
        name: String, counted: Int, leftOut: Int
    ) throws {
        let days = try #require(try cells.report().groups.first?.rate(name)?.days)
        #expect((days.counted, days.leftOut) == (counted, leftOut))
    }

    @Test func `of a day is told from the last instant of its failures`() throws {
        var cells = Cells()
        // The 10th ended 24 hours before the 12th began.
        for (asOf, value) in [(0, "0.500000"), (-1, nil)] as [(Int64, String?)] {
            cells = Cells()
            cells.asOf = Cells.instant("2026-11-12") + asOf
            cells.write("2026-11-10", [.failed: 2, .recoveredWithin1: 1])
            let rate = try cells.report("2026-11-10", "2026-11-11").groups.first?.rate("recoveryWithin1")
            #expect(rate?.ratio.decimal(digits: 6) == value)
        }
    }

    @Test func `of grace waits until the failures of a day are decided`() throws {
        let days = try #require(try cells.report().groups.first?.rate("graceRecovery")?.days)
        #expect((days.counted, days.leftOut) == (29, 1))
    }
}
