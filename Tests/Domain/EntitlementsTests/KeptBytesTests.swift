// The parts that read kept bytes where they lie, and the memory that is used again.

import Contract
import JSON
import MakeBelieve
import Notices
import Testing

@testable import Entitlements
@testable import SubscriptionHistory

/// Reads the first bytes of longer ones: those behind them exist, so that only the reader can refuse them.
private func read<Result>(_ bytes: [UInt8], first: Int, _ body: (inout KeptReader) -> Result) -> Result {
    bytes.withUnsafeBufferPointer { whole in
        var reader = KeptReader(UnsafeBufferPointer(rebasing: whole[..<first]))
        return body(&reader)
    }
}

@Suite struct `The reader of kept bytes` {
    @Test func `reads a text up to the last byte, and none beyond it`() {
        for (count, first, isValid) in [(2, 3, true), (3, 3, false), (2, 2, false), (0, 1, true), (1, 1, false)] {
            read([UInt8(count), 97, 98, 99, 100], first: first) { reader in
                let text = reader.text()
                #expect(reader.isValid == isValid, "\(count) of \(first)")
                #expect(text.text == Text(isValid ? String("ab".prefix(count)) : ""))
            }
        }
    }

    @Test func `refuses numbers that end behind the last byte`() {
        read(Array(repeating: 1, count: 16), first: 7) { reader in #expect(reader.fixed() == 0 && !reader.isValid) }
        read([0x80, 1], first: 1) { reader in #expect(reader.unsigned() == 0 && !reader.isValid) }
        read([1, 0x80, 0x80, 1] + Array(repeating: 1, count: 9), first: 3) { reader in
            #expect(reader.byte() == 1 && reader.unsigned() == 0 && !reader.isValid)
            #expect(reader.byte() == 0 && reader.fixed() == 0 && reader.text().count == 0, "and all that follows")
        }
        read([5], first: 0) { reader in #expect(reader.byte() == 0 && !reader.isValid) }
    }

    /// Short numbers are read at once if eight bytes follow, and one by one otherwise.
    @Test func `reads every number that was written, and no longer form of it`() {
        var numbers: [UInt64] = [0, 1, .max]
        for bits in 1..<64 as Range<UInt64> { numbers += [(1 << bits) - 1, 1 << bits, (1 << bits) + 1] }
        for number in numbers {
            var writer = ByteWriter()
            writer.unsigned(number)
            let bytes = writer.bytes
            for behind in [0, 9] {
                let all = bytes + Array(repeating: 0xff, count: behind)
                read(all, first: all.count) { reader in
                    #expect(reader.unsigned() == number && reader.isValid && reader.place == bytes.count)
                }
                var longer = bytes
                longer[longer.count - 1] |= 0x80
                longer.append(0)
                longer += Array(repeating: 0, count: behind)
                read(longer, first: longer.count) { reader in
                    _ = reader.unsigned()
                    #expect(!reader.isValid, "\(number)")
                }
            }
        }
    }
}

@Suite struct `Memory that is used again` {
    @Test func `gives each text one number, whatever it was used for before`() {
        let words = (0..<300).map { Array("text \($0 % 100)".utf8) }
        var texts = KnownTexts()
        for round in 1...4 {
            texts.removeAll()
            let count = [3, 100, 20, 60][round - 1]
            var numbers: [TextNumber] = []
            for word in words.prefix(count) + words.prefix(count) {
                // The arrays outlive this.
                word.withUnsafeBufferPointer {
                    numbers.append(texts.number(TextPlace(start: $0.baseAddress!, count: $0.count)))
                }
            }
            #expect(texts.count == min(count, 100) && numbers.prefix(count) == numbers.suffix(count))
            #expect(numbers.prefix(count).map { Int($0.value) } == (0..<count).map { $0 % 100 + 1 })
            #expect(texts[numbers[0]]?.text == "text 0" && texts[.none] == nil)
        }
        withExtendedLifetime(words) {}
    }

    @Test func `inserts, removes and grows as an array does`() {
        var chance = Chance(seed: 1)
        var list = Scratch<Int64>(capacity: 1)
        var array: [Int64] = []
        for number in 0..<500 as Range<Int64> {
            let place = Int(chance.below(Int64(array.count + 1)))
            list.insert(number, at: place)
            array.insert(number, at: place)
            if chance.yes(20) {
                let gone = Int(chance.below(Int64(array.count + 1)))
                list.removeFirst(gone)
                array.removeFirst(gone)
            }
            if chance.yes(5), !array.isEmpty {
                list.removeLast()
                array.removeLast()
            }
            #expect(Array(list.values) == array && list.last == array.last)
        }
        list.fill(7, count: 900)
        #expect(list.count == 900 && list.values.allSatisfy { $0 == 7 })
    }
}

@Suite struct `States in another form than the worker's` {
    /// How a state differs from the one that the worker writes of the same history.
    enum Form: CaseIterable { case same, ownTerms, reversedTexts, unusedText, repeatedText, longSubtype }

    /// Each row has an id that is a number, an end, and terms.
    private func state(_ facts: Facts, _ form: Form) -> [UInt8] {
        facts.withHistory { history in
            var table: [TextPlace?] = [nil]
            func place(_ number: TextNumber, _ history: borrowing History) -> UInt64 {
                guard let text = history.texts[number] else { return 0 }
                return UInt64(table.lastIndex { $0 == text } ?? 0)
            }
            for row in history.purchases.values {
                if let expiry = row.expiry, let text = history.texts[expiry.subtype], !table.contains(text) {
                    table.append(text)
                }
                history.terms(of: row).forEachText { number in
                    if let text = history.texts[number], !table.contains(text) { table.append(text) }
                }
            }
            // The subtype of a row, and the first of the terms of another: so rows name this text, and the beginning of it. The
            // beginning gets the number that is free, as it does when it is read, because rows before it name all other texts.
            let long = table.firstIndex { $0 == TextPlace("VOLUNTARY") } ?? 0
            switch form {
            case .reversedTexts: table = [nil] + table.dropFirst().reversed()
            case .unusedText: table.insert(TextPlace("nobody's"), at: 1)
            case .repeatedText: table.append(table[1])
            case .longSubtype: table[long] = TextPlace("12345678901234567890123456789012345678901 and more")
            case .same, .ownTerms: break
            }
            var writer = ByteWriter()
            writer.byte(0)
            writer.byte(0)
            writer.byte(History.codingVersion)
            writer.byte(0)
            writer.unsigned(UInt64(table.count - 1))
            for text in table.dropFirst() { if let text { writer.text(text.bytes) } }
            writer.unsigned(UInt64(history.purchases.count))
            var (date, terms) = (Int64(0), Terms?.none)
            for row in history.purchases.values {
                let own = history.terms(of: row)
                let isSame = own == terms && form != .ownTerms
                let subtype = row.expiry.map { form == .longSubtype ? UInt64(long) : place($0.subtype, history) }
                let flags: PurchaseFlags = isSame ? [.numericId, .expires, .sameTexts] : [.numericId, .expires]
                writer.unsigned(flags.union(subtype == nil ? [] : .expiry).rawValue)
                writer.unsigned(row.id.number)
                writer.signed(row.purchaseDate, from: date)
                writer.signed(row.version.signedDate, from: row.purchaseDate)
                writer.fixed(row.version.hash)
                writer.signed(row.expiresDate ?? 0, from: row.purchaseDate)
                if let subtype {
                    writer.signed((row.expiry?.signedDate ?? row.purchaseDate), from: row.purchaseDate)
                    writer.unsigned(subtype)
                }
                var texts: [UInt64] = []
                own.forEachText { texts.append(place($0, history)) }
                if form == .longSubtype, terms == nil { texts[0] = UInt64(long) }
                if !isSame { for text in texts { writer.unsigned(text) } }
                (date, terms) = (row.purchaseDate, own)
            }
            writer.unsigned(0)
            return writer.bytes
        }
    }

    @Test(arguments: Form.allCases)
    func `are read as the worker's, and written in the worker's`(_ form: Form) throws {
        let token = "'appAccountToken':'t','currency':'EUR'"
        let known = try facts([
            told("A", at: d(0), period(1, token)), told("A", at: d(30), period(2, "'productId':'plus'")),
            told("EXPIRED", "VOLUNTARY", at: d(60), period(3, "'productId':'plus'")),
            told("A", at: d(90), period(4, token)),
        ])
        let state = state(known, form)
        if form != .longSubtype { #expect(Facts(bytes: Array(state.dropFirst(2))) == known) }
        let usual = [0, 0] + (try #require(Facts(bytes: Array(state.dropFirst(2))))).bytes
        #expect((usual == state) == (form == .same), "it is another form of the same")
        let news = [
            told("A", at: d(120), period(5, token), renewal(1, at: d(150))), told("A", at: d(121), period(1, token)),
            told("A", at: d(122), period(3, "'productId':'nobody's'".replacing("y's", with: "ys"))),
        ]
        for record in news {
            func outcome(_ state: [UInt8]) -> Outcome {
                var driven = DrivenTeller(apps: [app], leeway: hour, .production, kept: state)
                return driven.hear(Array(record.utf8), at: d(130))
            }
            let found = outcome(state)
            #expect(found == outcome(usual))
            guard case .written(let output, _) = found else {
                Issue.record("\(found)")
                continue
            }
            #expect(output.value != nil)
        }
    }
}

@Suite struct `A member of a notification` {
    /// A wrong length of a name would lose a member without a word.
    @Test(arguments: [
        "transactionId:'2'", "purchaseDate:1", "expiresDate:2", "revocationDate:4", "isUpgraded:true",
        "price:5", "type:'a'", "bundleId:'b'", "productId:'c'", "subscriptionGroupIdentifier:'d'",
        "appAccountToken:'e'",
        "inAppOwnershipType:'f'", "revocationType:'g'", "currency:'h'", "billingPlanType:'i'", "offerType:6",
        "commitmentInfo:{'billingPeriodNumber':1}", "commitmentInfo:{'totalBillingPeriods':2}",
        "commitmentInfo:{'commitmentExpiresDate':3}", "commitmentInfo:{'commitmentPrice':4}",
    ])
    func `of a transaction is kept`(_ member: String) throws {
        try expectChange(of: member) { told("A", at: d(0), $0, nil) }
    }

    @Test(arguments: ["offerIdentifier:'a'", "offerDiscountType:'b'"])
    func `of an offer is kept`(_ member: String) throws {
        try expectChange(of: member, "'offerType':2,") { told("A", at: d(0), $0, nil) }
    }

    @Test(arguments: [
        "autoRenewStatus:1", "autoRenewProductId:'a'", "expirationIntent:2", "isInBillingRetryPeriod:true",
        "gracePeriodExpiresDate:3", "priceIncreaseStatus:1", "renewalDate:4", "renewalPrice:5", "appAccountToken:'b'",
        "renewalBillingPlanType:'c'", "commitmentInfo:{'commitmentAutoRenewStatus':0}",
        "commitmentInfo:{'commitmentAutoRenewProductId':'d'}",
        "commitmentInfo:{'commitmentRenewalBillingPlanType':'e'}",
    ])
    func `of a renewal info is kept`(_ member: String) throws {
        try expectChange(of: member) { told("A", at: d(0), nil, $0) }
    }

    private func expectChange(of member: String, _ usual: String = "", _ record: (Part) -> String) throws {
        let parts = member.split(separator: ":", maxSplits: 1).map(String.init)
        let least = [("transactionId", "'1'"), ("purchaseDate", "9")].filter { $0.0 != parts[0] }
        func facts(_ more: String) throws -> Facts {
            let members = least.map { "'\($0.0)':\($0.1)" }.joined(separator: ",")
            return try reading(record(Part(members: usual + members + more))).facts
        }
        // The hash differs in any case, so it is left out.
        func rows(_ facts: Facts) -> String {
            facts.withHistory { history in
                for place in history.purchases.indices { history.purchases[place].version.hash = 0 }
                for place in history.renewals.indices { history.renewals[place].version.hash = 0 }
                var writer = ByteWriter()
                history.write(to: &writer, copiesKept: false)
                return "\(writer.bytes)"
            }
        }
        let changed = try rows(facts(",'\(parts[0])':\(parts[1])"))
        let without = try rows(
            facts(
                parts[0] == "transactionId" || parts[0] == "purchaseDate"
                    ? ",'\(parts[0])':\(parts[1] == "'2'" ? "'1'" : "9")" : ""))
        #expect(changed != without, "\(member)")
    }

    @Test func `of a sealed commitment is not said`() throws {
        let sealed = "'billingPlanType':'MONTHLY','commitmentInfo':{'sealed':'QUJD','billingPeriodNumber':3}"
        let known = try timeline(
            told(
                "A", at: d(0), period(1, sealed),
                renewal(1, at: d(30), "'commitmentInfo':{'sealed':'QUJD','commitmentAutoRenewStatus':0}")))
        #expect(known.entitlement(at: d(1)).commitment == nil)
        let renewals = try facts([
            told(
                "A", at: d(0), nil,
                renewal(1, at: d(30), "'commitmentInfo':{'sealed':'QUJD','commitmentAutoRenewStatus':0}"))
        ]).renewalInfos
        #expect(renewals.count == 1 && renewals[0].commitment == nil)
    }
}
