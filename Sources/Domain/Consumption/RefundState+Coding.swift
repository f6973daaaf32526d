// Encodes the state of a subscription's refunds as bytes.
//
// Format 1: flags, then each part whose flag is set: usage, standings, outcomes, asked, requests, early attempts. Most
// subscriptions only had a free trial, and take one byte. Invalid bytes are rejected.

internal import Notices
internal import Records

private struct Parts: OptionSet {
    let rawValue: UInt8

    static let freeTrial = Parts(rawValue: 1 << 0)
    static let usage = Parts(rawValue: 1 << 1)
    static let standings = Parts(rawValue: 1 << 2)
    static let outcomes = Parts(rawValue: 1 << 3)
    static let asked = Parts(rawValue: 1 << 4)
    static let requests = Parts(rawValue: 1 << 5)
    static let earlyAttempts = Parts(rawValue: 1 << 6)
    static let all = Parts(rawValue: 1 << 7 - 1)
}

extension RefundState {
    public var bytes: [UInt8] {
        var parts: Parts = []
        if hadFreeTrial { parts.insert(.freeTrial) }
        if !usage.isEmpty { parts.insert(.usage) }
        if !standings.isEmpty { parts.insert(.standings) }
        if !outcomes.isEmpty { parts.insert(.outcomes) }
        if !asked.isEmpty { parts.insert(.asked) }
        if !requests.isEmpty { parts.insert(.requests) }
        if !earlyAttempts.isEmpty { parts.insert(.earlyAttempts) }
        var writer = ByteWriter(capacity: 64 + requests.count * 512)
        writer.byte(parts.rawValue)
        if parts.contains(.usage) { usage.write(to: &writer) }
        if parts.contains(.standings) { writer.list(standings) { $0.write(to: &$1) } }
        if parts.contains(.outcomes) { writer.list(outcomes) { $0.write(to: &$1) } }
        if parts.contains(.asked) {
            writer.unsigned(UInt64(forgottenAsked))
            writer.list(asked) { $1.text($0) }
        }
        if parts.contains(.requests) { writer.list(requests) { $0.write(to: &$1) } }
        if parts.contains(.earlyAttempts) { writer.list(earlyAttempts) { $0.write(to: &$1) } }
        return writer.bytes
    }

    /// nil if the bytes are not a valid state.
    ///
    /// - Parameter format: the format in which the bytes were written. A new format must still read the one before it.
    public init?(_ bytes: [UInt8], format: UInt8 = Self.format) {
        guard format == Self.format else { return nil }
        var reader = ByteReader(bytes)
        guard let parts = reader.byte().map(Parts.init(rawValue:)), Parts.all.isSuperset(of: parts) else { return nil }
        hadFreeTrial = parts.contains(.freeTrial)
        if parts.contains(.usage) {
            guard let usage = UsageTable(&reader), !usage.isEmpty else { return nil }
            self.usage = usage
        }
        if parts.contains(.standings) {
            guard let list = reader.part({ RefundStanding(&$0) }) else { return nil }
            standings = list
        }
        if parts.contains(.outcomes) {
            guard let list = reader.part({ KnownOutcome(&$0) }) else { return nil }
            outcomes = list
        }
        if parts.contains(.asked) {
            guard let forgotten = reader.unsigned(), forgotten < UInt64(Int64.max),
                let list = reader.part({ $0.text() })
            else { return nil }
            forgottenAsked = Int64(forgotten)
            asked = list
        }
        if parts.contains(.requests) {
            guard let list = reader.part({ RefundRequest(&$0) }) else { return nil }
            requests = list
        }
        if parts.contains(.earlyAttempts) {
            guard let list = reader.part({ Attempt(&$0) }) else { return nil }
            earlyAttempts = list
        }
        guard reader.isAtEnd else { return nil }
    }
}

// MARK: Pieces

extension ByteWriter {
    fileprivate mutating func list<Element>(_ elements: [Element], _ write: (Element, inout ByteWriter) -> Void) {
        unsigned(UInt64(elements.count))
        for element in elements { write(element, &self) }
    }

    fileprivate mutating func optionalText(_ text: Text?) {
        byte(text == nil ? 0 : 1)
        if let text { self.text(text) }
    }

    fileprivate mutating func flag(_ flag: Bool) { byte(flag ? 1 : 0) }

    /// 0 means nil.
    fileprivate mutating func choice<Choice: CaseIterable & Equatable>(_ choice: Choice?) {
        let place = choice.flatMap { choice in Choice.allCases.enumerated().first { $0.element == choice }?.offset }
        byte(place.map { UInt8($0) + 1 } ?? 0)
    }
}

extension ByteReader {
    fileprivate mutating func list<Element>(_ read: (inout ByteReader) -> Element?) -> [Element]? {
        guard let count = count() else { return nil }
        var elements: [Element] = []
        for _ in 0..<count {
            guard let element = read(&self) else { return nil }
            elements.append(element)
        }
        return elements
    }

    /// An empty part is not written.
    fileprivate mutating func part<Element>(_ read: (inout ByteReader) -> Element?) -> [Element]? {
        list(read).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The outer nil means invalid bytes, here and below.
    fileprivate mutating func optionalText() -> Text?? {
        switch byte() {
        case 0: return .some(nil)
        case 1: return text().map { .some($0) }
        default: return nil
        }
    }

    fileprivate mutating func flag() -> Bool? {
        switch byte() {
        case 0: false
        case 1: true
        default: nil
        }
    }

    fileprivate mutating func choice<Choice: CaseIterable>(_: Choice.Type) -> Choice?? {
        guard let place = byte() else { return nil }
        if place == 0 { return .some(nil) }
        return Choice.allCases.enumerated().first { $0.offset + 1 == Int(place) }.map { .some($0.element) }
    }
}

extension UsageTable {
    fileprivate func write(to writer: inout ByteWriter) {
        all.write(to: &writer)
        writer.optional(forgottenRefusal)
        writer.list(entries) { entry, writer in
            writer.text(entry.transactionId)
            writer.signed(entry.timestamp)
            entry.usage.write(to: &writer)
        }
    }

    fileprivate init?(_ reader: inout ByteReader) {
        guard let all = Usage(&reader), let refusal = reader.optional(),
            let entries = reader.list({ reader -> Entry? in
                guard let id = reader.text(), let timestamp = reader.signed(), let usage = Usage(&reader) else {
                    return nil
                }
                return Entry(transactionId: id, timestamp: timestamp, usage: usage)
            })
        else { return nil }
        self.all = all
        forgottenRefusal = refusal
        self.entries = entries
    }
}

extension Usage {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.flag(consent != nil)
        if let consent {
            writer.flag(consent.isGiven)
            writer.signed(consent.at)
        }
        writer.choice(deliveryStatus)
        writer.choice(sampleContentProvided.map { $0 ? Answer.yes : .no })
        writer.choice(refundPreference)
        for number in [consumptionPercentage, accountCreatedAt, playTimeSeconds, userStatus, platform] {
            writer.optional(number)
        }
    }

    fileprivate init?(_ reader: inout ByteReader) {
        guard let hasConsent = reader.flag() else { return nil }
        if hasConsent {
            guard let isGiven = reader.flag(), let at = reader.signed() else { return nil }
            consent = Consent(isGiven: isGiven, at: at)
        }
        guard let delivery = reader.choice(DeliveryStatus.self), let sample = reader.choice(Answer.self),
            let preference = reader.choice(RefundPreference.self), let percentage = reader.optional(),
            let created = reader.optional(), let playTime = reader.optional(), let status = reader.optional(),
            let platform = reader.optional()
        else { return nil }
        deliveryStatus = delivery
        sampleContentProvided = sample.map { $0 == .yes }
        refundPreference = preference
        consumptionPercentage = percentage
        accountCreatedAt = created
        playTimeSeconds = playTime
        userStatus = status
        self.platform = platform
    }

    private enum Answer: CaseIterable { case no, yes }
}

extension RefundStanding {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.text(transactionId.text)
        writer.signed(version.signedDate)
        writer.fixed(version.hash)
        writer.flag(isRefunded)
    }

    fileprivate init?(_ reader: inout ByteReader) {
        guard let id = reader.text(), let date = reader.signed(), let hash = reader.fixed(),
            let isRefunded = reader.flag()
        else { return nil }
        self.init(
            transactionId: TransactionId(id), version: Version(signedDate: date, hash: hash), isRefunded: isRefunded)
    }
}

extension RefundState.KnownOutcome {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.text(id)
        writer.choice(outcome as RefundOutcome?)
        writer.text(transactionId)
        writer.signed(signedDate)
        writer.optional(amount?.value)
        writer.optionalText(amount?.currency)
    }

    fileprivate init?(_ reader: inout ByteReader) {
        guard let id = reader.text(), case .some(let outcome?) = reader.choice(RefundOutcome.self),
            let transactionId = reader.text(), let signedDate = reader.signed(), let amount = reader.optional(),
            let currency = reader.optionalText()
        else { return nil }
        self.init(
            id: id, outcome: outcome, transactionId: transactionId, signedDate: signedDate,
            amount: amount.map { ConsumptionRecord.Amount(value: $0, currency: currency) })
    }
}

extension Attempt {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.text(id)
        writer.signed(number)
        writer.signed(at)
        for member in [httpStatus, errorCode, retryAt] { writer.optional(member) }
    }

    fileprivate init?(_ reader: inout ByteReader) {
        guard let id = reader.text(), let number = reader.signed(), let at = reader.signed(),
            let status = reader.optional(), let code = reader.optional(), let retryAt = reader.optional()
        else { return nil }
        self.init(id: id, number: number, at: at, httpStatus: status, errorCode: code, retryAt: retryAt)
    }
}

extension RefundRequest {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.text(id)
        writer.signed(signedDate)
        writer.signed(timestamp)
        writer.optionalText(reason)
        writer.optionalText(transactionId)
        writer.signed(refundsRequested)
        writer.byte(stage.number)
        writer.list(toldAttempts) { $1.signed($0) }
        writer.optional(firstUnanswered)
        writer.flag(purchase != nil)
        purchase?.write(to: &writer)
        writer.flag(decision != nil)
        decision?.write(to: &writer)
    }

    fileprivate init?(_ reader: inout ByteReader) {
        guard let id = reader.text(), let signedDate = reader.signed(), let timestamp = reader.signed(),
            let reason = reader.optionalText(), let transactionId = reader.optionalText(),
            let requested = reader.signed(), let stage = reader.byte().flatMap(Stage.init(number:)),
            let told = reader.list({ $0.signed() }), let unanswered = reader.optional(),
            let hasPurchase = reader.flag()
        else { return nil }
        var purchase: Purchase?
        if hasPurchase {
            guard let read = Purchase(&reader, transactionId) else { return nil }
            purchase = read
        }
        guard let hasDecision = reader.flag() else { return nil }
        var decision: Decision?
        if hasDecision {
            guard let read = Decision(&reader) else { return nil }
            decision = read
        }
        self.init(
            id: id, signedDate: signedDate, timestamp: timestamp, reason: reason, transactionId: transactionId,
            purchase: purchase, refundsRequested: requested, stage: stage, decision: decision, toldAttempts: told,
            firstUnanswered: unanswered)
    }
}

extension RefundRequest.Stage {
    /// The indexes are part of the format: append new values at the end.
    private static let all: [RefundRequest.Stage] =
        [.waiting, .decided, .sent, .failed, .expired]
        + [.noTransaction, .foreignApp, .familyShared, .assigned, .settled, .noConsent, .policy].map {
            RefundRequest.Stage.withheld($0)
        }

    fileprivate var number: UInt8 { UInt8(Self.all.firstIndex(of: self)!) }

    fileprivate init?(number: UInt8) {
        guard Self.all.indices.contains(Int(number)) else { return nil }
        self = Self.all[Int(number)]
    }
}

extension Purchase {
    private static var texts: [WritableKeyPath<Purchase, Text?>] {
        [
            \.productType, \.bundleId, \.productId, \.storefront, \.ownership, \.currency, \.billingPlan,
            \.appAccountToken,
        ]
    }
    private static var numbers: [WritableKeyPath<Purchase, Int64?>] {
        [\.price, \.quantity, \.offerType, \.commitmentPeriod]
    }

    fileprivate func write(to writer: inout ByteWriter) {
        writer.signed(purchaseDate)
        for text in Self.texts { writer.optionalText(self[keyPath: text]) }
        for number in Self.numbers { writer.optional(self[keyPath: number]) }
        writer.flag(isAdvancedCommerce)
    }

    fileprivate init?(_ reader: inout ByteReader, _ transactionId: Text?) {
        guard let transactionId, let date = reader.signed() else { return nil }
        self.init(transactionId: transactionId, purchaseDate: date)
        for text in Self.texts {
            guard let read = reader.optionalText() else { return nil }
            self[keyPath: text] = read
        }
        for number in Self.numbers {
            guard let read = reader.optional() else { return nil }
            self[keyPath: number] = read
        }
        guard let isAdvanced = reader.flag() else { return nil }
        isAdvancedCommerce = isAdvanced
    }
}

extension RefundRequest.Decision {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.optionalText(policy?.version)
        writer.optionalText(policy?.rule)
        writer.text(Text(body))
        writer.text(Text(facts))
        writer.optionalText(detail)
    }

    fileprivate init?(_ reader: inout ByteReader) {
        guard let version = reader.optionalText(), let rule = reader.optionalText(), let body = reader.text(),
            let facts = reader.text(), let detail = reader.optionalText()
        else { return nil }
        self.init(
            policy: version.map { ConsumptionRecord.Policy(version: $0, rule: rule) }, body: body.bytes,
            facts: facts.bytes, detail: detail)
    }
}
