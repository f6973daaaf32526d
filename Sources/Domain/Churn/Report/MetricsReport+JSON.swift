// A report as JSON.

internal import Contract
public import JSON
internal import Notices

extension MetricsReport {
    /// Writes members into an object that the caller has begun.
    public func write(to json: inout JSONWriter) {
        json.member("from", request.from.description)
        json.member("to", request.to.description)
        json.name("by")
        json.array { json in
            for dimension in request.by { json.string(dimension.rawValue) }
        }
        json.member("asOf", orNull: horizon.asOf)
        // All days before this one are over.
        json.member("notOverFrom", horizon.day?.description)
        json.name("formulas")
        json.object { json in
            for (name, formula) in Self.formulas {
                json.name(text: name)
                json.string(formula)
            }
        }
        json.name("groups")
        json.array { json in
            for group in groups {
                json.object { json in
                    name(group.name, to: &json)
                    json.members(of: group)
                }
            }
            for series in series {
                json.object { json in
                    name(series.name, to: &json)
                    json.name("series")
                    json.array { json in
                        for part in series.parts { json.part(part, horizon) }
                    }
                }
            }
        }
    }

    private func name(_ name: CellParts, to json: inout JSONWriter) {
        json.name("group")
        json.object { json in
            for (name, value) in request.names(of: name) {
                json.member(name, utf8: value.bytes.isEmpty ? nil : value.bytes)
            }
        }
    }

    /// Of all stocks and rates by their names, which are all different.
    static let formulas: [(name: String, formula: String)] = {
        let none = Tally()
        let stocks = Stock.ofCounts(none, none) + Stock.ofMoney(none, none)
        let rates =
            Rate.ofCounts(none, paying: 0, areOver: true, MatureDays(Horizon(nil, dayOf: dayInUTC)))
            + Rate.ofMoney(none, mrr: 0, areOver: true)
        return stocks.map { ($0.name, $0.formula) } + rates.map { ($0.name, $0.formula) }
    }()
}

extension ChurnCounter {
    /// The stocks at start and end already show it.
    var isDelta: Bool {
        switch self {
        case .activeDelta, .trialDelta, .graceDelta, .retryDelta, .atRiskDelta: true
        default: false
        }
    }
}

extension JSONWriter {
    fileprivate mutating func part(_ part: MetricsReport.Part, _ horizon: Horizon) {
        object { json in
            json.member("from", part.from.description)
            json.member("to", part.to.description)
            json.member("over", horizon.isOver(part.to.number - 1))
            json.members(of: part.group)
        }
    }

    fileprivate mutating func members(of group: MetricsReport.Group) {
        numbers("stocks", group.stocks)
        name("counts")
        sums(group.counts, of: ChurnCounter.allCases.filter { !$0.isMoney && !$0.isDelta })
        rates(group.rates)
        name("money")
        array { json in
            for money in group.money {
                json.object { json in
                    json.member("currency", utf8: money.currency.bytes.isEmpty ? nil : money.currency.bytes)
                    json.numbers("stocks", money.stocks)
                    json.name("amounts")
                    json.sums(money.sums, of: ChurnCounter.allCases.filter { $0.isMoney && !$0.isDelta })
                    json.rates(money.rates)
                }
            }
        }
        name("openDays")
        array { json in
            for day in group.openDays { json.day(day) }
        }
    }

    private mutating func numbers(_ name: StaticString, _ stocks: [Stock]) {
        self.name(name)
        object { json in
            for stock in stocks {
                json.name(text: stock.name)
                json.object { json in
                    json.member("start", stock.start)
                    json.member("end", stock.end)
                }
            }
        }
    }

    /// Writes zeros as well: the reader need not know which counters exist.
    private mutating func sums(_ sums: Sums, of counters: [ChurnCounter]) {
        object { json in
            for counter in counters {
                json.name(text: counter.name)
                json.integer(sums[counter])
            }
        }
    }

    private mutating func rates(_ rates: [Rate]) {
        name("rates")
        object { json in
            for rate in rates {
                json.name(text: rate.name)
                json.object { json in json.members(of: rate) }
            }
        }
    }

    private mutating func members(of rate: Rate) {
        member("value", json: rate.ratio.decimal(digits: Rate.digits).map { Array($0.utf8) })
        member("numerator", rate.ratio.numerator)
        member("denominator", rate.ratio.denominator)
        member("provisional", rate.isProvisional)
        if rate.isProvisional {
            name("because")
            array { json in for doubt in rate.doubts { json.string(doubt.rawValue) } }
        }
        if let beside = rate.beside {
            name(text: beside.name)
            integer(rate.besideValue)
        }
        if let days = rate.days {
            member("daysCounted", days.counted)
            member("daysLeftOut", days.leftOut)
        }
        if rate.isApproximate { member("approximate", MetricsReport.approximation) }
    }

    private mutating func day(_ day: MetricsReport.OpenDay) {
        object { json in
            json.member("day", day.day.description)
            json.member("over", day.isOver)
            for (counter, value) in zip(MetricsReport.OpenDay.counters, day.open) {
                json.name(text: counter.name)
                json.integer(value)
            }
        }
    }
}
