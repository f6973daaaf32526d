// What another policy would have changed, as one JSON document that is written while the topic is read.

import CommandLine
import Consumption
import Contract
import JSON
import Notices
import Records

/// Changes are written as they are found, one per line, so that memory does not grow with their number.
struct WhatIfStream {
    private let output: Output
    private var isFirst = true

    init(_ output: Output) { self.output = output }

    func begin(_ query: WhatIfQuery, _ names: Names) {
        var json = JSONWriter()
        json.object { json in
            json.member("policy", query.policy.version)
            json.member("environment", names.environment.rawValue)
            json.member("from", orNull: query.period.from)
            json.member("to", orNull: query.period.to)
        }
        output.data(Self.text(json.bytes.dropLast()) + ",\"changes\":[")
    }

    mutating func tell(_ finding: WhatIf.Finding) {
        var json = JSONWriter(capacity: 512)
        json.object { json in
            json.member("id", utf8: finding.id.bytes)
            json.member("originalTransactionId", utf8: finding.originalTransactionId.bytes)
            json.member("transactionId", utf8: finding.transactionId?.bytes)
            json.member("requestedAt", finding.requestedAt)
            json.member("productId", utf8: finding.productId?.bytes)
            json.member("price", orNull: finding.atStake?.value)
            json.member("currency", utf8: finding.atStake?.currency?.bytes)
            json.name("before")
            Self.write(finding.before, rule: finding.ruleBefore, to: &json)
            json.name("after")
            Self.write(finding.after, rule: finding.ruleAfter, to: &json)
        }
        output.data((isFirst ? "" : ",") + Self.text(json.bytes[...]))
        isFirst = false
    }

    func end(_ report: WhatIfReport, _ scan: ConsumptionScan) {
        var json = JSONWriter()
        json.object { json in
            json.member("requests", report.same + report.changed.requests)
            json.member("same", report.same)
            json.member("changed", report.changed.requests)
            json.member("unreadable", report.unreadable)
            json.name("atStake")
            Self.write(report.changed, to: &json)
            json.name("counts")
            json.array { list in
                for (change, count) in report.sortedCounts {
                    list.object { item in
                        item.name("before")
                        Self.write(change.before, to: &item)
                        item.name("after")
                        Self.write(change.after, to: &item)
                        item.member("requests", count.requests)
                        item.name("atStake")
                        Self.write(count, to: &item)
                    }
                }
            }
            json.name("position")
            scan.writePosition(to: &json)
        }
        output.data("]," + Self.text(json.bytes.dropFirst()))
    }

    /// By currency, in milliunits.
    private static func write(_ count: WhatIfReport.Count, to json: inout JSONWriter) {
        json.object { json in
            for amount in count.sortedAmounts {
                json.name(text: "\(amount.currency)")
                json.integer(amount.value)
            }
        }
    }

    private static func write(_ answer: WhatIf.Answer, to json: inout JSONWriter) {
        json.object { json in members(of: answer, &json) }
    }

    private static func write(_ answer: WhatIf.Answer, rule: Text?, to json: inout JSONWriter) {
        json.object { json in
            members(of: answer, &json)
            json.member("rule", utf8: rule?.bytes)
        }
    }

    private static func members(of answer: WhatIf.Answer, _ json: inout JSONWriter) {
        switch answer {
        case .withhold: json.member("withhold", true)
        case .send(let preference, let delivery, let sample):
            json.member("refundPreference", preference?.rawValue)
            json.member("deliveryStatus", delivery.rawValue)
            json.member("sampleContentProvided", sample)
        }
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}
