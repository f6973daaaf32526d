// What `perennial size --format json` prints: one object.

import Contract
import JSON
import Sizing

extension SizeReport {
    var json: String {
        var json = JSONWriter()
        json.object { json in
            json.name("installation")
            writeInstallation(&json)
            json.name("assumptions")
            json.array { json in for words in assumptions { json.string(words) } }
            json.name("topics")
            json.array { json in for topic in sizing.topics { write(topic, &json) } }
            json.name("processes")
            json.array { json in for process in sizing.processes { write(process, &json) } }
            json.name("brokers")
            write(sizing.brokers, &json)
            json.name("stateBytes")
            json.object { json in
                for state in sizing.stateBytes {
                    json.name(text: state.role.rawValue)
                    json.integer(wholeNumber(state.bytes))
                }
            }
            json.name("figures")
            writeFigures(&json)
        }
        return String(decoding: json.bytes, as: UTF8.self)
    }

    private func writeInstallation(_ json: inout JSONWriter) {
        let (customers, decisions) = (sizing.installation.customers, sizing.installation.decisions)
        json.object { json in
            json.member("subscribers", customers.subscribers)
            json.number("renewalsADay", customers.renewalsADay)
            json.number("churned", customers.churned)
            json.number("purchasesADay", customers.purchasesADay)
            json.number("refundRequestsADay", customers.refundRequestsADay)
            json.number("usageRecordsADay", customers.usageRecordsADay)
            json.number("questionsASecond", customers.questionsASecond)
            json.member("kinds", customers.kinds)
            json.member("years", decisions.years)
            json.number("peakFactor", decisions.peakFactor)
            json.member("partitions", decisions.plan.partitions)
            json.member("replicationFactor", decisions.plan.replicationFactor)
            json.number("tickSeconds", decisions.tickSeconds)
            json.member("archivesSignedPayloads", decisions.archivesSignedPayloads)
            json.number("notificationsADay", sizing.rates.notifications)
            json.number("ticksADay", sizing.rates.ticks)
        }
    }

    private func write(_ topic: TopicSizing, _ json: inout JSONWriter) {
        json.object { json in
            json.member("topic", topic.id.name)
            json.number("recordsADay", topic.recordsADay)
            json.number("recordsASecondAtPeak", topic.recordsASecondAtPeak)
            json.member("bytesADay", wholeNumber(topic.bytesADay))
            json.member("keptBytes", wholeNumber(topic.keptBytes))
            json.member("keptBytesInAllCopies", wholeNumber(topic.keptBytesInAllCopies))
        }
    }

    private func write(_ process: ProcessSizing, _ json: inout JSONWriter) {
        json.object { json in
            json.member("role", process.role.rawValue)
            json.member("processes", process.processes)
            json.number("coresOnAverage", process.coresOnAverage)
            json.number("coresAtPeak", process.coresAtPeak)
            json.member("memoryBytesOfEach", wholeNumber(process.memoryBytes))
            json.member("diskBytesOfEach", wholeNumber(process.diskBytes))
            json.member("threadsBeyondPartitions", orNull: process.lacksPartitions)
        }
    }

    private func write(_ brokers: BrokerSizing, _ json: inout JSONWriter) {
        json.object { json in
            json.member("brokers", brokers.brokers)
            json.number("coresOnAverage", brokers.coresOnAverage)
            json.number("coresAtPeak", brokers.coresAtPeak)
            json.number("coresOfEachWhenOneIsLost", brokers.coresOfEach)
            json.member("memoryBytesOfEach", wholeNumber(brokers.memoryBytes))
            json.member("diskBytesOfEach", wholeNumber(brokers.diskBytes))
        }
    }

    private func writeFigures(_ json: inout JSONWriter) {
        json.object { json in
            json.member("date", sizing.figures.date)
            json.member("machine", sizing.figures.machine)
            json.member("row", MeasuredFigures.row)
            for name in FigureName.allCases {
                guard let figure = sizing.figures.figures[name] else { continue }
                json.name(text: name.rawValue)
                json.object { json in
                    json.number("value", figure.value)
                    json.member("unit", figure.unit)
                    json.member("part", figure.part)
                }
            }
        }
    }
}

extension JSONWriter {
    /// Up to six decimals. A sizing has no number that is not finite: its description was checked.
    fileprivate mutating func number(_ name: StaticString, _ value: Double) {
        self.name(name)
        let millionths = wholeNumber(value * 1e6)
        var fraction = String(millionths % 1_000_000)
        fraction = String(repeating: "0", count: 6 - fraction.count) + fraction
        while fraction.hasSuffix("0") { fraction.removeLast() }
        json(Array((fraction.isEmpty ? "\(millionths / 1_000_000)" : "\(millionths / 1_000_000).\(fraction)").utf8))
    }
}
