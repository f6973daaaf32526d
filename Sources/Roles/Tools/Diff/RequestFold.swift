// What was decided about one refund request, as one value. Pure.

import Consumption
import JSON
import Notices

/// `consumption` has one record for each step of a request. `diff` compares the decision: the request, the last step of the worker
/// (`decided` or `withheld`), the answer of the second policy, and Apple's outcome. It does not compare earlier steps, their clock,
/// and the steps of the sender, because a replay may read usage at another point between two notifications.
final class RequestFold {
    private var json = JSONDocument()

    struct Step {
        let id: Text
        let isDecision: Bool
    }

    /// nil: this version does not know such a record.
    func step(_ value: Span<UInt8>) -> Step? {
        do throws(JSONFault) { try json.read(value) } catch { return nil }
        guard let record = ConsumptionRecord(json) else { return nil }
        return Step(id: record.id, isDecision: Self.isDecision(record.kind))
    }

    private static func isDecision(_ kind: ConsumptionRecord.Kind) -> Bool {
        switch kind {
        case .requested, .decided, .withheld, .outcome, .shadow: true
        case .sent, .retrying, .failed, .expired: false
        }
    }

    /// - Parameter steps: in order. A step that is not JSON is included as text.
    func value(_ steps: [[UInt8]]) -> [UInt8] {
        var single: [(name: StaticString, value: [UInt8])] = []
        var outcomes: [[UInt8]] = []
        var others: [[UInt8]] = []
        func put(_ name: StaticString, _ value: [UInt8]) {
            single.removeAll { "\($0.name)" == "\(name)" }
            single.append((name, value))
        }
        for step in steps {
            guard (try? json.read(step.span)) != nil, let record = ConsumptionRecord(json) else {
                others.append(step)
                continue
            }
            switch record.kind {
            case .requested: put("requested", step)
            case .decided, .withheld: put("decision", Self.withoutClock(json))
            case .shadow: put("shadow", Self.withoutClock(json))
            case .outcome: outcomes.append(step)
            case .sent, .retrying, .failed, .expired: break
            }
        }
        var writer = JSONWriter()
        writer.object { writer in
            for (name, value) in single { writer.member(name, json: value) }
            writer.name("outcomes")
            writer.array { list in for outcome in outcomes { list.json(outcome) } }
            writer.name("unreadable")
            writer.array { list in for other in others { list.string(String(decoding: other, as: UTF8.self)) } }
        }
        return writer.bytes
    }

    /// A step without its time.
    private static func withoutClock(_ json: borrowing JSONDocument) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            var next = json.firstMember(of: json.root)
            while let member = next {
                if !json.name(of: member, is: "at") {
                    writer.name(text: json.name(of: member).withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
                    writer.json(json.raw(member.value).withUnsafeBytes { Array($0) })
                }
                next = json.member(after: member)
            }
        }
        return writer.bytes
    }
}
