// The input of the worker of entitlements: records, and the states that it wrote itself.

import Contract
import Entitlements
import JSON
import Notices
import SubscriptionHistory

/// Records, one per line: whatever they contain, their order does not matter, and there is an answer at any instant.
let facts: Target = { bytes, count in
    var document = JSONDocument()
    let readings = input(bytes, count).split(separator: UInt8(ascii: "\n")).compactMap { line -> Facts? in
        guard (try? document.read(Array(line).span)) != nil else { return nil }
        return NotificationReading(document).facts
    }
    let known = readings.reduce(into: Facts()) { $0.merge($1) }
    let backwards = readings.reversed().reduce(into: Facts()) { $0.merge($1) }
    precondition(known == backwards, "what is known depends on the order")
    precondition(kept(encoded(known)) == known, "a state reads back as another")
    ask(known)
    return 0
}

/// Bytes that are accepted as a state are a state that could have been written. The worker hears a record about it, or says that it
/// is damaged; it never stops.
let state: Target = { bytes, count in
    let bytes = input(bytes, count)
    hear(head + bytes)
    hear(bytes)
    guard let known = kept(bytes) else { return 0 }
    requireOneForm(bytes[...])
    requireOneForm(known.bytes[...])
    precondition(kept(encoded(known)) == known, "a state reads back as another")
    var twice = known
    precondition(!twice.merge(known) && twice == known, "a state has news for itself")
    ask(known)
    return 0
}

/// The beginning of a state of which nothing was published. The inputs begin behind it.
private let head: [UInt8] = [0, 0]

/// The facts of a state; nil: the bytes are none.
private func kept(_ bytes: [UInt8]) -> Facts? { Facts(bytes: bytes) }

private func encoded(_ facts: Facts) -> [UInt8] { facts.bytes }

/// A history that is written from its values has the same bytes as one whose rows are copied, and they read back as they are.
private func requireOneForm(_ history: ArraySlice<UInt8>) {
    func written(_ bytes: ArraySlice<UInt8>, copiesKept: Bool) -> [UInt8]? {
        bytes.withUnsafeBufferPointer { bytes in
            var reader = KeptReader(bytes)
            var history = History()
            guard history.read(&reader) else { return nil }
            var writer = ByteWriter()
            history.write(to: &writer, copiesKept: copiesKept)
            return writer.bytes
        }
    }
    let copied = written(history, copiesKept: true)
    let encoded = written(history, copiesKept: false)
    precondition(copied == encoded, "rows are copied to other bytes than they are written to")
    guard let encoded else { return }
    precondition(written(encoded[...], copiesKept: false) == encoded, "a state reads back as another")
}

/// Merges a record into a whole state. What is kept after that is read again, and has no news for the same record.
private func hear(_ state: [UInt8]) {
    var document = JSONDocument()
    guard (try? document.read(news.span)) != nil else { preconditionFailure("the record is not JSON") }
    for rules in rules {
        var teller = SubscriptionTeller(rules, .production)
        teller.read(document)
        let after: [UInt8]? = state.withUnsafeBufferPointer { kept in
            guard teller.load(kept, format: SubscriptionTeller.format), teller.mergeNews() else { return nil }
            tell(&teller)
            requireOneForm(teller.historyBytes)
            return Array(teller.stateBytes)
        }
        guard let after else { continue }
        after.withUnsafeBufferPointer { kept in
            // The greatest sequence is refused.
            guard teller.load(kept, format: SubscriptionTeller.format) else { return }
            precondition(!teller.mergeNews(), "a record is news twice")
        }
    }
}

private func tell(_ teller: inout SubscriptionTeller) {
    let key = Array("2000".utf8)
    key.withUnsafeBufferPointer { key in
        teller.tell(key, at: World.now, SubscriptionTeller.Origin(partition: 0, offset: 1))
        for number in teller.events.indices { _ = teller.eventValue(number, id: key, key) }
    }
    _ = teller.disagreesWithStatus
}

private let news = Array(
    """
    {"v":1,"notificationType":"EXPIRED","subtype":"VOLUNTARY","signedDate":150,"status":2,"transaction":{"transactionId":"a2",\
    "purchaseDate":50,"expiresDate":150,"appAccountToken":"A","offerType":2,"offerIdentifier":"o","signedDate":51},\
    "renewalInfo":{"autoRenewStatus":0,"autoRenewProductId":"p","renewalDate":100,"expirationIntent":1,"signedDate":1}}
    """.utf8)

private let rules: [EntitlementRules] = {
    let app = App(
        bundleId: "com.example.app", appAppleId: 123,
        entitlements: [App.Entitlement(name: "premium", productIds: ["pro"])],
        periods: Period("P1Y2M").map { [App.ProductPeriod(productId: "season", period: $0)] } ?? [])
    return [Environment.production, .sandbox].map { EntitlementRules(apps: [app], leeway: 3_600_000, environment: $0) }
}()

private func ask(_ known: Facts) {
    for rules in rules {
        guard let timeline = Timeline(known, rules) else { continue }
        // More instants of one timeline find nothing new, and take the fuzzer's time.
        let starts = known.purchases.prefix(8).map(\.transaction.purchaseDate)
        for now in starts + [Int64.min, World.now, Int64.max] {
            let answer = timeline.entitlement(at: now)
            precondition(answer.access || answer.accessUntil != nil, "no access, and no instant when it ended")
            if answer.access, let end = answer.accessUntil {
                precondition(end > now || now == .max, "access until the past")
            }
            for run in answer.runs {
                precondition(run.end.map { $0 > run.start } ?? true, "a run that ends before it begins")
            }
            if let next = timeline.nextChange(after: now) {
                precondition(
                    next > now && timeline.entitlement(at: next) != answer, "an announced change that changes nothing")
            }
        }
    }
}

extension World {
    /// Lines of records, each a short story.
    static let stories = [
        "grace": """
        {"v":1,"notificationType":"SUBSCRIBED","subtype":"INITIAL_BUY","signedDate":1,"status":1,"transaction":\
        {"transactionId":"1","purchaseDate":1,"expiresDate":100,"type":"Auto-Renewable Subscription",\
        "bundleId":"com.example.app","productId":"pro","signedDate":1,"offerType":1,"price":9990,"currency":"USD"},\
        "renewalInfo":{"autoRenewStatus":1,"renewalDate":100,"signedDate":1}}
        {"v":1,"notificationType":"DID_FAIL_TO_RENEW","subtype":"GRACE_PERIOD","signedDate":100,"status":4,"transaction":null,\
        "renewalInfo":{"autoRenewStatus":1,"isInBillingRetryPeriod":true,"gracePeriodExpiresDate":200,"renewalDate":100,\
        "expirationIntent":2,"signedDate":100}}
        """,
        "upgrade": """
        {"v":1,"notificationType":"REFUND","signedDate":50,"status":1,"transaction":{"transactionId":"1","purchaseDate":1,\
        "expiresDate":100,"isUpgraded":true,"revocationDate":50,"signedDate":50,"inAppOwnershipType":"PURCHASED"}}
        {"v":1,"notificationType":"EXPIRED","subtype":"VOLUNTARY","signedDate":150,"transaction":{"transactionId":"a2",\
        "purchaseDate":50,"expiresDate":150,"appAccountToken":"A","inAppOwnershipType":"FAMILY_SHARED",\
        "revocationType":"FAMILY_REVOKE","signedDate":51}}
        """,
        "commitment": """
        {"v":1,"notificationType":"DID_RENEW","signedDate":10,"transaction":{"transactionId":"7","purchaseDate":10,\
        "expiresDate":20,"billingPlanType":"MONTHLY","signedDate":10,"commitmentInfo":{"billingPeriodNumber":12,\
        "totalBillingPeriods":12,"commitmentExpiresDate":20,"commitmentPrice":9}},"renewalInfo":{"autoRenewStatus":0,\
        "autoRenewProductId":"p","renewalBillingPlanType":"MONTHLY","appAccountToken":"B","priceIncreaseStatus":0,\
        "renewalPrice":5,"signedDate":11,"commitmentInfo":{"commitmentAutoRenewStatus":0,\
        "commitmentAutoRenewProductId":"q","commitmentRenewalBillingPlanType":"BILLED_UPFRONT"}}}
        """,
        "season": """
        {"v":1,"notificationType":"ONE_TIME_CHARGE","signedDate":10,"transaction":{"transactionId":"7","purchaseDate":10,\
        "type":"Non-Renewing Subscription","bundleId":"com.example.app","productId":"season","signedDate":10}}
        """,
    ]

    /// The states after these records.
    static let states = stories.mapValues { story in
        var document = JSONDocument()
        let known = story.split(separator: "\n").reduce(into: Facts()) { known, line in
            guard (try? document.read(Array(line.utf8).span)) != nil else { fatalError("a seed is no JSON") }
            known.merge(NotificationReading(document).facts)
        }
        return encoded(known)
    }
}
