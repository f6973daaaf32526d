// POST /usage: usage records from an app's own backend.

import Contract
import HTTP
import JSON
import Records
import Telemetry

final class UsageIntake: Sendable {
    private static let limitNames = 20
    private static let limitNameBytes = 100
    /// Most wrong records that an answer lists: a sender with more should fix those first. An answer that is larger
    /// than its request would help a flood.
    private static let limitFaults = 100

    private let sink: any RecordSink
    private let metrics: IngestMetrics
    private let refusals: RefusalLog
    private let records: RecordFactory
    /// The environment of records that name none.
    private let environment: Contract.Environment

    init(
        sink: any RecordSink, metrics: IngestMetrics, refusals: RefusalLog, records: RecordFactory,
        environment: Contract.Environment
    ) {
        self.sink = sink
        self.metrics = metrics
        self.refusals = refusals
        self.records = records
        self.environment = environment
    }

    func take(_ arrival: Arrival, _ answer: @escaping Answer) {
        let document: JSONValue
        do throws(JSONFault) {
            document = try JSONValue.read(arrival.body, limits: Self.limits(bytes: arrival.body.count))
        } catch {
            return answer(refuse(.error(400, "malformed")))
        }
        let rows = if case .array(let elements) = document { elements } else { [document] }
        var taken: [OutgoingRecord] = []
        var ignored: [String] = []
        var faults: [(index: Int, reason: String)] = []
        for (index, row) in rows.enumerated() {
            do throws(UsageRecord.Fault) {
                let usage = try UsageRecord(row)
                ignored += usage.ignored
                taken.append(records.record(of: usage, orIn: environment, receivedDate: arrival.receivedDate))
            } catch {
                faults.append((index, error.reason))
            }
        }
        guard faults.isEmpty else { return answer(refuse(.json(422, Self.list(faults)))) }
        let count = taken.count
        guard count > 0 else { return answer(accept(0, ignored: [])) }
        let unread = ignored
        sink.publish(
            Publication(taken, by: arrival.deadline) { outcome in
                switch outcome {
                case .written: answer(self.accept(count, ignored: unread))
                case .failed(let failure):
                    self.metrics.count(failure)
                    self.refusals.note(failure.rawValue)
                    answer(.error(503, failure.rawValue))
                }
            })
    }

    private func accept(_ records: Int, ignored: [String]) -> HTTPResponse {
        metrics.count(.accepted)
        metrics.usageRecords.add(UInt64(records))
        guard !ignored.isEmpty else { return HTTPResponse(status: 202) }
        metrics.usageIgnored.add(UInt64(ignored.count))
        return .json(202, Self.list(ignored: ignored))
    }

    /// Each name once, and only as many as somebody would read.
    private static func list(ignored names: [String]) -> [UInt8] {
        var told: [[UInt8]] = []
        for name in names.map({ Array($0.utf8.prefix(limitNameBytes)) }) where told.count < limitNames {
            if !told.contains(name) { told.append(name) }
        }
        var writer = JSONWriter()
        writer.object {
            $0.name("ignored")
            $0.array { for name in told { $0.string(String(decoding: name, as: UTF8.self)) } }
        }
        return writer.bytes
    }

    private func refuse(_ response: HTTPResponse) -> HTTPResponse {
        metrics.count(.invalid)
        refusals.note(IngestMetrics.Ending.invalid.rawValue)
        return response
    }

    /// The rules for Apple's payloads: 16 levels, no name twice.
    private static func limits(bytes: Int) -> JSONLimits {
        var limits = JSONLimits()
        limits.bytes = bytes
        limits.depth = 16
        return limits
    }

    private static func list(_ faults: [(index: Int, reason: String)]) -> [UInt8] {
        var writer = JSONWriter()
        writer.object {
            $0.name("errors")
            $0.array {
                for fault in faults.prefix(limitFaults) {
                    $0.object {
                        $0.member("index", fault.index)
                        $0.member("reason", fault.reason)
                    }
                }
            }
        }
        return writer.bytes
    }
}
