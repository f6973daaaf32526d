// Both domains side by side: same outputs, same kept bytes, same timers, byte for byte.

import Contract
import FormerEntitlements
import JSON
import Notices
import Testing

@testable import Entitlements
@testable import SubscriptionHistory

/// Both domains side by side, for one subscription.
struct Pair: ~Copyable {
    /// One of them needs escapes, and has a letter of two bytes.
    private static let keys = [Array("2000000123456789".utf8), Array("2\"\\\u{1}é".utf8)]

    private var former: FormerTeller
    private var teller: SubscriptionTeller
    private var json = JSONDocument()
    private var history = History()
    private(set) var kept: [UInt8]?
    private(set) var due: Int64?
    private var offset: Int64 = 0
    private var key = Self.keys[0]
    private var begun = 0
    /// How often what was compared.
    private(set) var seen = Seen()

    struct Seen {
        var values = 0
        var events = 0
        var timers = 0
        var bindings = 0
        var repetitions = 0
        var disagreements = 0
        var damaged = 0

        static func += (left: inout Seen, right: Seen) {
            left.values += right.values
            left.events += right.events
            left.timers += right.timers
            left.bindings += right.bindings
            left.repetitions += right.repetitions
            left.disagreements += right.disagreements
            left.damaged += right.damaged
        }
    }

    init(apps: [App], leeway: Int64, _ environment: Contract.Environment, kept: [UInt8]? = nil) {
        former = FormerTeller(apps: apps, leeway: leeway, environment)
        let rules = EntitlementRules(apps: apps, leeway: leeway, environment: environment)
        #expect(rules.fingerprint == former.fingerprint)
        teller = SubscriptionTeller(rules, environment)
        self.kept = kept
    }

    /// Forgets the subscription.
    mutating func begin(kept: [UInt8]? = nil) {
        self.kept = kept
        due = nil
        begun += 1
        key = Self.keys[begun % Self.keys.count]
    }

    /// Fires the timers that are due, and then hears the record.
    mutating func hear(_ value: [UInt8], at clock: Int64) {
        fire(until: clock)
        offset += 1
        let expected = former.hear(
            value, key: key, kept: kept, clock: clock, partition: 7, offset: offset)
        let outcome = hearNow(value, at: clock)
        compare(outcome, expected)
    }

    mutating func fire(until clock: Int64) {
        var rounds = 0
        while let instant = due, instant <= clock {
            guard rounds < 100 else {
                Issue.record("there is always another timer")
                return
            }
            due = nil
            let expected = former.fire(key: key, kept: kept, clock: instant)
            let outcome = fireNow(at: instant)
            seen.timers += 1
            rounds += 1
            compare(outcome, expected)
        }
    }

    private mutating func hearNow(_ value: [UInt8], at clock: Int64) -> FormerOutcome {
        guard (try? json.read(value.span)) != nil, json.kind(of: json.root) == .object else { return .notJSON }
        teller.read(json)
        let isUnusable = teller.news.hasUnusableTransaction
        if teller.news.isEmpty { return .nothing(isUnusable: isUnusable) }
        return withKept { pair in
            guard pair.teller.mergeNews() else { return .nothingNew(isUnusable: isUnusable) }
            let origin = SubscriptionTeller.Origin(partition: 7, offset: pair.offset)
            return .written(pair.told(at: clock, origin), isUnusable: isUnusable)
        }
    }

    private mutating func fireNow(at clock: Int64) -> FormerOutcome {
        withKept { .written($0.told(at: clock, nil), isUnusable: false) }
    }

    private mutating func withKept(_ body: (inout Pair) -> FormerOutcome) -> FormerOutcome {
        guard let kept else {
            return teller.load(nil, format: 1) ? body(&self) : .damagedState
        }
        return kept.withUnsafeBufferPointer { teller.load($0, format: 1) ? body(&self) : .damagedState }
    }

    private mutating func told(at clock: Int64, _ origin: SubscriptionTeller.Origin?) -> FormerOutput {
        var output = FormerOutput()
        key.withUnsafeBufferPointer { key in
            let hasAnswer = teller.tell(key, at: clock, origin)
            if teller.hasNewValue { output.value = teller.value }
            for number in teller.events.indices {
                let event = Array("id-\(number)".utf8).withUnsafeBufferPointer {
                    teller.eventValue(number, id: $0, key)
                }
                output.events.append(event)
            }
            output.left = teller.accountLeft.map { Array($0.bytes) }
            output.bound = teller.accountBound.map { Array($0.bytes) }
            if output.bound != nil { output.account = teller.accountValue }
            output.disagrees = hasAnswer && origin != nil && teller.disagreesWithStatus
        }
        output.state = Array(teller.stateBytes)
        output.due = teller.nextStep
        return output
    }

    private mutating func compare(_ outcome: FormerOutcome, _ expected: FormerOutcome) {
        if outcome != expected { Issue.record("\(words(outcome))\nis not\n\(words(expected))") }
        switch expected {
        case .written(let output, _):
            compareWithoutCopies(output.state)
            kept = output.state
            due = output.due
            seen.values += output.value == nil ? 0 : 1
            seen.events += output.events.count
            seen.bindings += output.bound == nil && output.left == nil ? 0 : 1
            seen.disagreements += output.disagrees ? 1 : 0
        case .nothingNew: seen.repetitions += 1
        case .damagedState: seen.damaged += 1
        case .notJSON, .nothing: break
        }
    }

    /// Rows written from their values are those that are copied.
    private mutating func compareWithoutCopies(_ state: [UInt8]) {
        state.withUnsafeBufferPointer { bytes in
            var reader = KeptReader(bytes)
            _ = reader.signed()
            if reader.byte() == 1 { #expect(Told(&reader) != nil) }
            let rest = Array(bytes.suffix(reader.rest))
            guard history.read(&reader) else {
                Issue.record("a state that was written is not read")
                return
            }
            var writer = ByteWriter()
            history.write(to: &writer, copiesKept: false)
            #expect(writer.bytes == rest)
        }
    }

    private func words(_ outcome: FormerOutcome) -> String {
        guard case .written(let output, _) = outcome else { return "\(outcome)" }
        func text(_ bytes: [UInt8]?) -> String { bytes.map { String(decoding: $0, as: UTF8.self) } ?? "-" }
        return ([output.value] + output.events + [output.left, output.bound, output.account]).map(text)
            .joined(separator: "\n") + "\n\(output.state)\n\(String(describing: output.due)) \(output.disagrees)"
    }
}
