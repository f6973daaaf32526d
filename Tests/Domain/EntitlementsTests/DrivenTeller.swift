// One subscription, driven in the same way as the worker drives it: records and timers in, everything that is written out.

import Contract
import JSON
import MakeBelieve
import Notices
import Testing

@testable import Entitlements
@testable import SubscriptionHistory

/// Everything that is written for one notification or timer of a subscription.
struct WrittenOutput: Equatable {
    /// nil: the answer is the published one.
    var value: [UInt8]?
    var events: [[UInt8]] = []
    /// The account that no longer has the subscription.
    var left: [UInt8]?
    /// The account that has it, and its record.
    var bound: [UInt8]?
    var account: [UInt8]?
    var state: [UInt8] = []
    var due: Int64?
    var disagrees = false
}

enum Outcome: Equatable {
    case notJSON
    /// The notification is not about a subscription.
    case nothing(isUnusable: Bool)
    case damagedState
    case nothingNew(isUnusable: Bool)
    case written(WrittenOutput, isUnusable: Bool)
}

struct DrivenTeller: ~Copyable {
    /// One of them needs escapes, and has a letter of two bytes.
    private static let keys = [Array("2000000123456789".utf8), Array("2\"\\\u{1}é".utf8)]

    private var teller: SubscriptionTeller
    private var json = JSONDocument()
    private var history = History()
    private(set) var kept: [UInt8]?
    private(set) var due: Int64?
    private var offset: Int64 = 0
    private var key = Self.keys[0]
    private var begun = 0
    private(set) var writings = Writings()
    /// How often what was written.
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
        teller = SubscriptionTeller(EntitlementRules(apps: apps, leeway: leeway, environment: environment), environment)
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
    @discardableResult mutating func hear(_ value: [UInt8], at clock: Int64) -> Outcome {
        fire(until: clock)
        offset += 1
        let outcome = hearNow(value, at: clock)
        take(outcome)
        return outcome
    }

    mutating func fire(until clock: Int64) {
        var rounds = 0
        while let instant = due, instant <= clock {
            guard rounds < 100 else {
                Issue.record("there is always another timer")
                return
            }
            due = nil
            seen.timers += 1
            rounds += 1
            take(fireNow(at: instant))
        }
    }

    private mutating func hearNow(_ value: [UInt8], at clock: Int64) -> Outcome {
        guard (try? json.read(value.span)) != nil, json.kind(of: json.root) == .object else { return .notJSON }
        teller.read(json)
        let isUnusable = teller.news.hasUnusableTransaction
        if teller.news.isEmpty { return .nothing(isUnusable: isUnusable) }
        return withKept { driven in
            guard driven.teller.mergeNews() else { return .nothingNew(isUnusable: isUnusable) }
            let origin = SubscriptionTeller.Origin(partition: 7, offset: driven.offset)
            return .written(driven.told(at: clock, origin), isUnusable: isUnusable)
        }
    }

    private mutating func fireNow(at clock: Int64) -> Outcome {
        withKept { .written($0.told(at: clock, nil), isUnusable: false) }
    }

    private mutating func withKept(_ body: (inout DrivenTeller) -> Outcome) -> Outcome {
        guard let kept else {
            return teller.load(nil, format: 1) ? body(&self) : .damagedState
        }
        return kept.withUnsafeBufferPointer { teller.load($0, format: 1) ? body(&self) : .damagedState }
    }

    private mutating func told(at clock: Int64, _ origin: SubscriptionTeller.Origin?) -> WrittenOutput {
        var output = WrittenOutput()
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

    private mutating func take(_ outcome: Outcome) {
        writings.add(parts(of: outcome))
        switch outcome {
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

    private func parts(of outcome: Outcome) -> [[UInt8]] {
        guard case .written(let output, let isUnusable) = outcome else { return [Array("\(outcome)".utf8)] }
        let told = [output.value] + output.events + [output.left, output.bound, output.account]
        let rest = "\(output.due.map { "\($0)" } ?? "-") \(output.disagrees) \(isUnusable)"
        return told.map { $0 ?? Array("-".utf8) } + [output.state, Array(rest.utf8)]
    }
}
