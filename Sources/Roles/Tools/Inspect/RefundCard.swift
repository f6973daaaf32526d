// One refund request on a card, for people who have to answer for it.

import Consumption
import Contract
import JSON
import Notices

struct RefundCard {
    private var card = CardLines()
    private let story: RefundStory
    private let facts: RefundFactsShown?
    private let now: Int64

    var lines: [String] { card.lines }

    /// - Parameter now: the clock of this host.
    init(_ story: RefundStory, _ environment: Contract.Environment, now: Int64, topic: String) {
        self.story = story
        self.now = now
        facts = story.facts.flatMap { RefundFactsShown($0) }
        card.text("refund", "\(shownText("\(story.id)")), \(environment.rawValue)")
        addRequest()
        card.blank()
        addStanding()
        addFacts()
        addAnswer()
        addAttempts()
        addOutcomes()
        card.blank()
        card.text("times", "in UTC; from \(topic)")
    }

    // MARK: What was asked

    private mutating func addRequest() {
        let reason = story.requestReason.map { shownText("\($0)") } ?? "without a reason"
        card.text("asked", "\(shownTime(story.requestedAt)), \(reason)")
        card.text("", "answer due by \(shownTime(story.deadline))")
        let subscription = shownText("\(story.originalTransactionId)")
        if let transaction = story.transactionId.map({ shownText("\($0)") }) {
            card.text(
                "purchase", transaction == subscription ? transaction : "\(transaction) of \(subscription)", hanging: 4)
        } else {
            card.text("purchase", "none: the request has no transaction (subscription \(subscription))")
        }
        guard let facts else { return }
        let product = [facts.text("productId"), facts.text("bundleId")].compactMap { $0 }.joined(separator: " of ")
        card.text("", [product, facts.text("productType") ?? ""].filter { !$0.isEmpty }.joined(separator: ", "))
        if let date = facts.number("purchaseDate") { card.text("", "bought \(shownTime(date))") }
        card.text("at stake", facts.money ?? "the transaction has no price")
    }

    // MARK: Where it stands

    private mutating func addStanding() {
        card.text("state", "\(story.standing.rawValue.uppercased()): \(standingInWords)")
    }

    private var isOpen: Bool { now < story.deadline }

    private var standingInWords: String {
        let deadline = shownTime(story.deadline)
        switch story.standing {
        case .waiting:
            return isOpen
                ? "nothing is decided yet; usage may still arrive" : "nothing was decided: is the worker running?"
        case .decided:
            return isOpen ? "the answer is about to be sent" : "not sent by \(deadline): is the worker running?"
        case .retrying:
            return isOpen
                ? "Apple has not accepted the answer yet" : "Apple had not accepted the answer by \(deadline)"
        case .withheld: return withholdingInWords
        case .sent:
            let at = story.ending.map { shownTime($0.at) } ?? ""
            return "Apple accepted the answer \(at), \(shownLength(max(0, story.margin ?? 0))) before the deadline"
        case .failed: return "Apple refused the answer permanently\(maybeSent)"
        case .expired:
            return story.decision == nil
                ? "it arrived too late to be answered" : "the answer did not reach Apple before the deadline"
        }
    }

    private var maybeSent: String {
        story.ending?.detail == ConsumptionRecord.maybeSent
            ? "; an earlier attempt had no answer and may have arrived" : ""
    }

    private var withholdingInWords: String {
        let detail = story.withholding.map { "\($0)" } ?? ""
        switch ConsumptionRecord.Withholding(rawValue: detail) {
        case .noTransaction?: return "the request has no transaction that can be answered"
        case .foreignApp?: return "the app is not in the worker's file apps"
        case .familyShared?: return "the purchase is shared in a family: only the buyer's can be answered"
        case .assigned?: return "the purchase was assigned by somebody else: only the buyer's can be answered"
        case .settled?: return "Apple had decided already"
        case .noConsent?:
            return isOpen
                ? "the customer has not consented, or has withdrawn consent; consent by \(shownTime(story.deadline)) still counts"
                : "the customer did not consent, or withdrew consent"
        case .policy?: return "the policy says so"
        case nil: return shownText(detail)
        }
    }

    // MARK: Why

    private static let testedTexts = ["storefront", "billingPlan", "offerType", "deliveryStatus"]
    private static let testedNumbers = [
        "commitmentPeriod", "consumptionPercentage", "daysSincePurchase", "refundsRequested", "refundsGranted",
    ]

    private mutating func addFacts() {
        guard let facts else { return }
        card.blank()
        var label = "facts"
        let assumed = facts.assumed
        func mark(_ name: String) -> String { assumed.contains(name) ? " (assumed)" : "" }
        var rows = Self.testedTexts.compactMap { name in facts.text(name).map { "\(name) \($0)\(mark(name))" } }
        rows += Self.testedNumbers.compactMap { name in
            facts.number(name).map { value in
                let shown = name == "consumptionPercentage" ? "\(groupedThousandths(value)) %" : "\(value)"
                return "\(name) \(shown)\(mark(name))"
            }
        }
        if facts["freeTrial"]?.bool == true { rows.append("freeTrial true") }
        if assumed.contains("sampleContentProvided") { rows.append("sampleContentProvided (assumed)") }
        for row in rows {
            card.text(label, row, hanging: 4)
            label = ""
        }
        let usage = facts["usage"]?.object?.members ?? []
        let consent = usage.first { $0.name == "consentedAt" }?.value.integer
        if let consent { card.text("consent", "given \(shownTime(consent)), as known at the decision") }
        let others = usage.filter { !$0.name.hasPrefix("consented") }
        card.text(
            "usage",
            others.isEmpty
                ? "only the consent" : others.map { "\($0.name)" }.joined(separator: ", ") + " from the app")
    }

    private mutating func addAnswer() {
        if let policy = story.policy {
            let rule = policy.rule.map { "\"\(shownText("\($0)"))\"" } ?? "none matches"
            card.text("rule", "\(rule), policy \(shownText("\(policy.version)"))", hanging: 4)
        } else if story.decision != nil {
            card.text("rule", "there was no policy: the facts and the preference from usage")
        }
        if let body = story.decision?.body.flatMap({ RefundBodyShown($0) }) {
            card.blank()
            var label = labelOfBody
            for member in body.members {
                card.text(label, "\(shownText(member.name)) \(shownText(member.value))", hanging: 4)
                label = ""
            }
            if story.decision?.detail == ConsumptionRecord.noPercentage {
                card.text("", "without GRANT_PRORATED, because it is not known how much was used")
            }
        }
        guard let shadow = story.shadow else { return }
        let version = (shadow.policy?.version).map { shownText("\($0)") } ?? ""
        let preference = shadow.body.flatMap { RefundBodyShown($0) }?.preference ?? "no preference"
        card.text("shadow", "policy \(version) would say: \(shadow.body == nil ? "withhold" : preference)", hanging: 4)
    }

    private var labelOfBody: String {
        switch story.standing {
        case .sent: "sent"
        case .waiting, .decided, .retrying: "to be sent"
        case .failed, .expired, .withheld: "answer"
        }
    }

    // MARK: What happened

    private mutating func addAttempts() {
        let attempts = story.attempts
        guard !attempts.isEmpty else { return }
        card.blank()
        var label = "attempts"
        for attempt in attempts {
            card.text(label, "\(shownTime(attempt.at))  \(Self.words(attempt, of: story))", hanging: 18)
            label = ""
        }
        if story.droppedSteps > 0 { card.text("", "\(story.droppedSteps) steps are left out") }
    }

    private static func words(_ attempt: ConsumptionRecord, of story: RefundStory) -> String {
        var words = "\(attempt.attempt ?? 0). "
        words += attempt.httpStatus.map { "\($0)" } ?? "no answer"
        if let code = attempt.errorCode { words += ", error \(code)" }
        switch attempt.kind {
        case .sent: words += ", accepted \(shownLength(max(0, story.margin ?? 0))) before the deadline"
        case .failed: words += ", refused permanently"
        default: words += attempt.retryAt.map { ", retry \(shownTime($0))" } ?? ""
        }
        return words
    }

    private mutating func addOutcomes() {
        card.blank()
        guard !story.outcomes.isEmpty else { return card.text("outcome", "Apple has not said what it decided") }
        var label = "outcome"
        for outcome in story.outcomes {
            let money = outcome.amount.map { ", \(shownMoney($0.value, $0.currency.map { "\($0)" }))" } ?? ""
            let word = outcome.detail.map { shownText("\($0)").uppercased() } ?? "UNKNOWN"
            card.text(label, "\(shownTime(outcome.at))  \(word)\(money)", hanging: 18)
            label = ""
        }
    }
}
