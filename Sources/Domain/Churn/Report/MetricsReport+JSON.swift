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
        json.name("groups")
        json.array { json in
            for group in groups { write(group, to: &json) }
        }
    }

    private func write(_ group: Group, to json: inout JSONWriter) {
        json.object { json in
            json.name("group")
            json.object { json in
                for (name, value) in request.names(of: group.name) {
                    json.member(name, utf8: value.bytes.isEmpty ? nil : value.bytes)
                }
            }
            json.numbers("stocks", group.stocks)
            json.name("counts")
            json.sums(group.counts, of: ChurnCounter.allCases.filter { !$0.isMoney && !$0.isDelta })
            json.rates(group.rates)
            json.name("money")
            json.array { json in
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
            json.name("openDays")
            json.array { json in
                for day in group.openDays { json.day(day) }
            }
        }
    }
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
    fileprivate mutating func numbers(_ name: StaticString, _ stocks: [Stock]) {
        self.name(name)
        object { json in
            for stock in stocks {
                json.name(text: stock.name)
                json.object { json in
                    json.member("start", stock.start)
                    json.member("end", stock.end)
                    json.member("formula", stock.formula)
                }
            }
        }
    }

    /// Writes zeros as well: the reader need not know which counters exist.
    fileprivate mutating func sums(_ sums: Sums, of counters: [ChurnCounter]) {
        object { json in
            for counter in counters {
                json.name(text: counter.name)
                json.integer(sums[counter])
            }
        }
    }

    fileprivate mutating func rates(_ rates: [Rate]) {
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
        member("formula", rate.formula)
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

    fileprivate mutating func day(_ day: MetricsReport.OpenDay) {
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
