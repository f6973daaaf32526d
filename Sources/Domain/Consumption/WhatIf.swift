// What another policy would have answered to requests that are already decided.

internal import JSON
public import Notices
public import Records

/// A decision contains its facts, so that another policy can be evaluated on it. Single-threaded.
public struct WhatIf: ~Copyable {
    /// The parts of an answer that the policy decides. V1 has no partial refund: there it counts as a full one.
    public enum Answer: Sendable, Hashable, Comparable {
        case withhold
        case send(preference: RefundPreference?, delivery: DeliveryStatus, sample: Bool)

        public static func < (left: Answer, right: Answer) -> Bool { left.order < right.order }

        private var order: String {
            switch self {
            case .withhold: ""
            case .send(let preference, let delivery, let sample):
                "\(preference?.rawValue ?? "") \(delivery.rawValue) \(sample)"
            }
        }
    }

    /// One request that was evaluated again.
    public struct Finding: Sendable, Equatable {
        public let id: Text
        public let originalTransactionId: Text
        public let transactionId: Text?
        /// When Apple signed the request.
        public let requestedAt: Int64
        public let productId: Text?
        /// The price of the purchase; nil: the transaction does not show it.
        public let atStake: ConsumptionRecord.Amount?
        public let ruleBefore: Text?
        public let before: Answer
        public let ruleAfter: Text?
        public let after: Answer

        public var isChanged: Bool { before != after }
    }

    public enum Word: Sendable, Equatable {
        /// The policy was never evaluated for it.
        case notDecided
        /// A build with a form of facts that this one does not know wrote it.
        case unreadable
        case found(Finding)
    }

    private let policy: RefundPolicy
    private var json = JSONDocument()

    public init(_ policy: RefundPolicy) { self.policy = policy }

    public mutating func ask(about record: ConsumptionRecord) -> Word {
        guard record.isAskable else { return .notDecided }
        guard let bytes = record.facts else { return .unreadable }
        do throws(JSONFault) { try json.read(bytes.span) } catch { return .unreadable }
        guard let facts = KnownFacts(json, json.root, transactionId: record.transactionId) else { return .unreadable }
        let before: Answer
        if record.kind == .withheld {
            before = .withhold
        } else {
            guard let sent = readBody(of: record) else { return .unreadable }
            before = sent
        }
        let verdict = facts.verdict(of: policy)
        let stake = facts.purchase.price.map {
            ConsumptionRecord.Amount(value: $0, currency: facts.purchase.currency)
        }
        return .found(
            Finding(
                id: record.id, originalTransactionId: record.originalTransactionId,
                transactionId: record.transactionId, requestedAt: record.requestedAt,
                productId: facts.purchase.productId, atStake: stake, ruleBefore: record.policy?.rule, before: before,
                ruleAfter: verdict.rule.map { Text($0) },
                after: Answer(verdict, isV1: facts.purchase.isAdvancedCommerce)))
    }

    private mutating func readBody(of record: ConsumptionRecord) -> Answer? {
        guard let body = record.body else { return nil }
        do throws(JSONFault) { try json.read(body.span) } catch { return nil }
        return Answer(json)
    }
}

extension ConsumptionRecord {
    /// True if a policy was evaluated for this record. If a request has several such records, the first one counts.
    public var isAskable: Bool {
        kind == .decided || kind == .withheld && detail?.description == Withholding.policy.rawValue
    }

    /// When Apple signed the request of this record.
    public var requestedAt: Int64 { RefundStory(of: self).requestedAt }
}

extension WhatIf.Answer {
    fileprivate init(_ verdict: PolicyVerdict, isV1: Bool) {
        if verdict.isWithheld {
            self = .withhold
        } else {
            let isPart = verdict.refundPreference == .grantProrated
            self = .send(
                preference: isV1 && isPart ? .grantFull : verdict.refundPreference, delivery: verdict.deliveryStatus,
                sample: verdict.sampleContentProvided)
        }
    }

    /// Reads a V1 or V2 body; nil if it is neither.
    fileprivate init?(_ body: borrowing JSONDocument) {
        guard body.kind(of: body.root) == .object, let sample = body.bool("sampleContentProvided", of: body.root) else {
            return nil
        }
        if let word = body.text("deliveryStatus", of: body.root) {
            guard let delivery = DeliveryStatus(rawValue: word.description) else { return nil }
            let preference = body.text("refundPreference", of: body.root)
            self = .send(
                preference: preference.flatMap { RefundPreference(rawValue: $0.description) }, delivery: delivery,
                sample: sample)
        } else {
            guard let number = body.integer("deliveryStatus", of: body.root),
                let delivery = DeliveryStatus.allCases.first(where: { $0.numberOfV1 == number })
            else { return nil }
            let preference = body.integer("refundPreference", of: body.root)
            self = .send(
                preference: [.grantFull, .decline].first { $0.numberOfV1 == preference }, delivery: delivery,
                sample: sample)
        }
    }
}

extension WhatIf.Answer: CustomStringConvertible {
    /// Leaves out the usual values: delivered, and no sample.
    public var description: String {
        switch self {
        case .withhold: return "withhold"
        case .send(let preference, let delivery, let sample):
            let parts = [
                preference?.rawValue ?? "no preference", delivery == .delivered ? nil : delivery.rawValue,
                sample ? "with sample" : nil,
            ]
            return parts.compactMap { $0 }.joined(separator: ", ")
        }
    }
}
