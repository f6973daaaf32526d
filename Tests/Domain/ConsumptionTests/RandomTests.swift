import JSON
import MakeBelieve
import Notices
import Testing

@testable import Consumption

/// A history, and the result of the desk beside that of the plain model.
private struct History {
    private typealias Event = PlainRefunds.Event

    private var chance: Chance
    private(set) var plain: PlainRefunds
    private(set) var desk: Desk
    private var now = asked
    private var clock = asked
    private var made: [String] = []

    init(seed: UInt64) throws {
        chance = Chance(seed: seed)
        let wait = chance.of(0, 10 * minute, hour, 24 * hour)
        let limit: Int64? = chance.yes(50) ? 60_000 : nil
        plain = PlainRefunds(wait: wait, limit: limit)
        let never = #"{"name":"a","when":{"consumptionPercentage":{"from":60000}},"answer":{"withhold":true}}"#
        let withholding = try policy(#"{"version":"1","rules":[\#(never)],"shadow":{"version":"2","rules":[]}}"#)
        desk = Desk(Desk.rules(limit == nil ? nil : withholding, wait: wait))
        try desk.pass(until: asked)
        for _ in 0..<Int(chance.below(40)) + 5 { try happen() }
        try note(.tick, at: now + 3 * day)
    }

    private mutating func happen() throws {
        let transaction = chance.of("7", "8")
        let back: Int64 = chance.yes(20) ? chance.below(14 * hour) : 0
        switch chance.below(100) {
        case 0..<18:
            let obstacle: String? = chance.yes(10) ? chance.of("foreign_app", "family_shared", "assigned") : nil
            let id = chance.yes(15) && !made.isEmpty ? made[Int(chance.below(Int64(made.count)))] : "q\(made.count)"
            guard !made.contains(id) else { return }
            made.append(id)
            try note(.request(id: id, transaction: transaction, signed: now - back, obstacle: obstacle), at: now)
        case 18..<28:
            let signed = now - back
            // Few instants, because Apple repeats notifications.
            let word = chance.of("refunded", "declined", "reversed")
            try note(
                .outcome(id: "\(word)-\(transaction)-\(signed)", word: word, transaction: transaction, signed: signed),
                at: now)
        case 28..<60:
            var usage = PlainRefunds.PlainUsage()
            usage.transaction = chance.yes(40) ? nil : transaction
            if chance.yes(60) {
                usage.consented = chance.yes(65)
                if chance.yes(60) {
                    usage.consentedAt = now + chance.of(-1, 1) * chance.below(3 * minute) / minute * minute
                }
            }
            if chance.yes(40) { usage.delivered = chance.of("DELIVERED", "DELIVERED", "UNDELIVERED_OTHER") }
            if chance.yes(40) { usage.percentage = chance.of(0, 50_000, 60_000, 100_000) }
            try note(.usage(usage), at: now)
        case 60..<80:
            guard let id = chance.yes(90) ? made.randomElement(using: &chance) : "q\(made.count)" else { return }
            let status: Int64? = chance.of(nil, 202, 400, 401, 404, 429, 500, 503, 500, nil)
            try note(.attempt(id: id, number: chance.below(4) + 1, status: status), at: now)
        default:
            now += chance.of(1, minute, 20 * minute, hour, 5 * hour, 12 * hour)
            if chance.yes(70) { try note(.tick, at: now) }
        }
    }

    private mutating func note(_ event: PlainRefunds.Event, at instant: Int64) throws {
        switch event {
        case .usage, .attempt: break
        default: clock = max(clock, instant)
        }
        plain.log.append(PlainRefunds.Entry(event: event, timestamp: instant, clock: clock))
        switch event {
        case .request(let id, let transaction, let signed, let obstacle):
            let more: [String: String] =
                switch obstacle {
                case "foreign_app": ["bundleId": #""com.example.two""#]
                case "family_shared": ["inAppOwnershipType": #""FAMILY_SHARED""#]
                case "assigned": ["inAppOwnershipType": #""ASSIGNED""#]
                default: [:]
                }
            try desk.ask(id, of: transaction, signed: signed, at: instant, more)
        case .outcome(let id, let word, let transaction, let signed):
            let type = ["refunded": "REFUND", "declined": "REFUND_DECLINED", "reversed": "REFUND_REVERSED"][word]!
            try desk.hear(outcome(type, id, of: transaction, signed: signed), at: instant)
        case .usage(let usage):
            try desk.say(usage.members, of: usage.transaction, at: instant)
        case .attempt(let id, let number, let status): try desk.attempt(number, status, of: id, at: instant)
        case .tick: try desk.pass(until: instant)
        }
    }

    /// Rules that every history must keep.
    func wrong() -> [String] {
        var wrong: [String] = []
        for id in Set(desk.told.map(\.id)) {
            let told = desk.told(about: id.description)
            if told.first?.kind != .requested { wrong.append("\(id) begins with \(told[0].word)") }
            if Set(told.filter { $0.kind == .decided }.compactMap(\.body)).count > 1 {
                wrong.append("\(id) has two bodies")
            }
            if let end = told.firstIndex(where: { [.sent, .failed, .expired].contains($0.kind) }),
                told[(end + 1)...].contains(where: { $0.kind != .outcome })
            {
                wrong.append("\(id) continues after its end: \(told.map(\.word))")
            }
            for (place, record) in told.enumerated() where record.kind == .shadow {
                let before = told[place - 1].word
                if before != "decided" && before != "withheld policy" { wrong.append("\(id) has a stray shadow") }
            }
            if told.contains(where: {
                ($0.body != nil) != ($0.kind == .decided || $0.kind == .shadow && $0.detail == nil)
            }) {
                wrong.append("\(id) has a body where none belongs")
            }
        }
        return wrong
    }
}

extension PlainRefunds.PlainUsage {
    fileprivate var members: String {
        var members: [String] = []
        if let consented { members.append("\"consented\":\(consented)") }
        if let consentedAt { members.append("\"consentedAt\":\(consentedAt)") }
        if let delivered { members.append("\"deliveryStatus\":\"\(delivered)\"") }
        if let percentage { members.append("\"consumptionPercentage\":\(percentage)") }
        return members.joined(separator: ",")
    }
}

@Suite struct `Random histories of refunds` {
    @Test(arguments: 0..<4)
    func `are told as a plain look at the whole history tells them`(part: Int) throws {
        var kinds: [String: Int] = [:]
        for seed in part * 250..<part * 250 + 250 {
            let history = try History(seed: UInt64(seed))
            for id in Set(history.desk.told.map(\.id.description)) {
                let told = history.desk.told(about: id).map { $0.kind == .shadow ? "shadow" : $0.word }
                let expected = history.plain.words(about: id)
                #expect(told == expected, "seed \(seed), \(id)")
            }
            #expect(history.wrong() == [], "seed \(seed)")
            for word in history.desk.words { kinds[word, default: 0] += 1 }
        }
        // Every case occurred.
        for word in [
            "requested", "decided", "withheld no_consent", "withheld settled", "withheld family_shared",
            "withheld foreign_app", "withheld assigned", "withheld policy", "sent", "failed", "failed maybe_sent",
            "retrying",
            "expired", "outcome refunded", "outcome declined", "outcome reversed", "shadow",
        ] { #expect(kinds[word, default: 0] > 0, "\(word) \(kinds)") }
    }

    @Test func `decide alike however the two rows of usage come among each other, and consent in any order`() throws {
        for seed in 0..<300 as Range<UInt64> {
            var chance = Chance(seed: seed)
            let own = (0..<3).map { _ in row(&chance) }
            let all = (0..<3).map { _ in row(&chance) }
            var decisions: Set<String> = []
            for _ in 0..<6 {
                var (one, other) = (own[...], all[...])
                var desk = Desk()
                while !one.isEmpty || !other.isEmpty {
                    let isOwn = other.isEmpty || !one.isEmpty && chance.yes(50)
                    let members = isOwn ? one.removeFirst() : other.removeFirst()
                    try desk.say(members, of: isOwn ? "7" : nil, at: d(9))
                }
                try desk.ask()
                try desk.pass(until: asked + hour)
                decisions.insert(desk.told.map(\.text).joined())
            }
            #expect(decisions.count == 1, "seed \(seed)")
            let words = (0..<5).map { _ in
                (
                    chance.yes(50) ? "7" : nil,
                    #""consented":\#(chance.yes(50)),"consentedAt":\#(d(1) + chance.below(3))"#
                )
            }
            var held: Set<[String]> = []
            for _ in 0..<6 {
                var desk = Desk()
                for (of, members) in words.shuffled(using: &chance) { try desk.say(members, of: of) }
                try desk.ask()
                try desk.pass(until: asked + hour)
                held.insert(desk.words)
            }
            #expect(held.count == 1, "seed \(seed)")
        }
    }

    private func row(_ chance: inout Chance) -> String {
        var members: [String] = []
        if chance.yes(60) {
            members.append(#""consented":\#(chance.yes(70)),"consentedAt":\#(d(1) + chance.below(5))"#)
        }
        if chance.yes(50) { members.append(#""deliveryStatus":"\#(chance.of("DELIVERED", "UNDELIVERED_OTHER"))""#) }
        if chance.yes(50) { members.append(#""consumptionPercentage":\#(chance.below(100_001))"#) }
        if chance.yes(50) {
            members.append(#""refundPreference":"\#(chance.of("DECLINE", "GRANT_FULL", "GRANT_PRORATED"))""#)
        }
        if chance.yes(50) { members.append(#""sampleContentProvided":\#(chance.yes(50))"#) }
        return members.joined(separator: ",")
    }

    /// Another build must be able to read the stored state: if the bytes change, `RefundState.format` must change. These bytes
    /// have every part except the free trial.
    @Test func `that a build has kept in format 1 are read and written by this one`() throws {
        #expect(RefundState.format == 1)
        let kept = bytes(
            "7e0100808ac5c4f56600000000000000000001013782acdad5f56600000000000000000001013882acdad5f566"
                + "81b82e7348e903d600011872657665727365642d382d3137363831343030303030303103013882acdad5f56600"
                + "00000101380102713082acdad5f56682acdad5f5660113554e494e54454e4445445f5055524348415345010138"
                + "020a00000180a0d5edee66010a436f6e73756d61626c65010f636f6d2e6578616d706c652e6f6e650109636f69"
                + "6e732e3130300103555341010950555243484153454401035553440000018c9c01010200000000010271300482"
                + "acdad5f5660194030000")
        let state = try #require(RefundState(kept, format: 1))
        #expect(state.bytes == kept)
        #expect(!state.usage.isEmpty && !state.standings.isEmpty && !state.outcomes.isEmpty && !state.asked.isEmpty)
        #expect(!state.requests.isEmpty && !state.earlyAttempts.isEmpty)
        #expect(RefundState(kept, format: 2) == nil)
        var trial = RefundState()
        trial.hadFreeTrial = true
        #expect(trial.bytes == [1] && RefundState([1]) == trial)
    }

    private func bytes(_ hexadecimal: String) -> [UInt8] {
        let digits = Array(hexadecimal.utf8)
        return stride(from: 0, to: digits.count, by: 2).map { index in
            UInt8(String(decoding: digits[index..<(index + 2)], as: UTF8.self), radix: 16)!
        }
    }

    @Test func `as bytes that are cut, damaged or of chance are read as a state or refused, and are worked on`() throws
    {
        var read = 0
        for seed in 0..<60 as Range<UInt64> {
            var chance = Chance(seed: seed)
            let bytes = try History(seed: seed).desk.state.bytes
            for cut in 0..<min(bytes.count, 200) { #expect(RefundState(Array(bytes[..<cut])) == nil || cut == 1) }
            #expect(RefundState(bytes + [0]) == nil)
            for _ in 0..<200 {
                var damaged = bytes
                for _ in 0...chance.below(3) {
                    damaged[Int(chance.below(Int64(bytes.count)))] = UInt8(chance.below(256))
                }
                read += try work(on: damaged) ? 1 : 0
                let noise = (0..<chance.below(64)).map { _ in UInt8(chance.below(256)) }
                read += try work(on: noise) ? 1 : 0
            }
        }
        #expect(read > 100)
        // A list that claims to be longer than its bytes allocates no memory for it.
        let long: [UInt8] = [0xff, 0xff, 0xff, 0xff, 0x7f]
        for part in 0..<7 { #expect(RefundState([1 << part] + long) == nil) }
        // Empty parts are not written.
        for (part, nothing) in [(1, 11), (2, 1), (3, 1), (4, 2), (5, 1), (6, 1)] {
            #expect(RefundState([1 << part] + [UInt8](repeating: 0, count: nothing)) == nil)
        }
        #expect(RefundState([1 << 4, 1, 0]) == nil)
        #expect(RefundState([]) == nil)
        #expect(RefundState([0x80]) == nil)
    }

    /// Whether the bytes are a state.
    private func work(on bytes: [UInt8]) throws -> Bool {
        guard var state = RefundState(bytes) else { return false }
        #expect(RefundState(state.bytes) == state)
        let rules = Desk.rules()
        for clock in [asked, Int64.max] {
            var step = RefundStep(originalTransactionId: "1000", clock: clock, timestamp: clock, rules: rules)
            state.wake(&step)
            state.take(UsageRow(try JSONValue.read(Array("{\(whole)}".utf8)), timestamp: clock), &step)
            var json = JSONDocument()
            try json.read(Array(request("new", of: "new", signed: asked).utf8).span)
            do throws(RefundFault) { try state.take(RefundNotice(json), &step) } catch {
                #expect(error == .tooManyRequests)
            }
            for status in [nil, 202] as [Int64?] {
                state.take(
                    Attempt(id: "new", number: 1, at: 0, httpStatus: status, errorCode: nil, retryAt: nil), &step)
            }
            for record in step.records { #expect(!record.value.isEmpty) }
        }
        return true
    }

    @Test func `overflow nothing where the numbers kept are as large as they can be`() throws {
        var desk = Desk()
        try desk.ask("q0", of: "1")
        var state = desk.state
        state.forgottenAsked = .max - 1
        guard var kept = RefundState(state.bytes) else { return }
        var step = RefundStep(originalTransactionId: "1000", clock: asked, timestamp: asked, rules: Desk.rules())
        for id in ["a", "b", "c"] {
            var json = JSONDocument()
            try json.read(Array(request(id, of: id).utf8).span)
            try kept.take(RefundNotice(json), &step)
        }
        #expect(step.records.count == 3)
    }
}
