import Consumption
import Contract
import JSON
import Notices

let hour: Int64 = 3_600_000
let day: Int64 = 24 * hour

/// The moment at which requests are signed.
let firstAsked: Int64 = 1_795_000_000_000

/// JSON text, quoted with `'`, as bytes.
func json(_ text: String) -> [UInt8] { Array(text.replacing("'", with: "\"").utf8) }

/// Notifications, usage and attempts of one subscription, and the resulting records.
struct Scene {
    var state = RefundState()
    var records: [ConsumptionRecord] = []
    let rules: ConsumptionRules
    let id: Text = "2000"

    init(policy: RefundPolicy? = nil, wait: Int64 = hour) {
        let app = App(
            bundleId: "com.example.app", appAppleId: 1, entitlements: [],
            periods: [App.ProductPeriod(productId: "pass", period: Period("P30D")!)])
        rules = ConsumptionRules(apps: [app], policy: policy, wait: wait)
    }

    private mutating func step(at clock: Int64, _ body: (inout RefundState, inout RefundStep) throws -> Void) rethrows {
        var step = RefundStep(originalTransactionId: id, clock: clock, timestamp: clock, rules: rules)
        try body(&state, &step)
        records += step.records
    }

    /// - Parameter transaction: members that replace the usual ones, quoted with `'`; nil: there is no transaction.
    mutating func tell(
        _ type: String, _ uuid: String, at signed: Int64 = firstAsked, clock: Int64? = nil, reason: String? = nil,
        _ transaction: [String: String]? = [:]
    ) throws {
        var members = [
            "transactionId": "'t1'", "purchaseDate": "\(firstAsked - 3 * day)", "bundleId": "'com.example.app'",
            "productId": "'coins.100'", "type": "'Consumable'", "inAppOwnershipType": "'PURCHASED'", "price": "9990",
            "currency": "'USD'", "storefront": "'USA'", "quantity": "1", "signedDate": "\(signed)",
        ]
        members.merge(transaction ?? [:]) { $1 }
        let object = members.sorted { $0.key < $1.key }.map { "'\($0.key)':\($0.value)" }.joined(separator: ",")
        let value =
            "{'v':1,'notificationUUID':'\(uuid)','notificationType':'\(type)','signedDate':\(signed),"
            + "'consumptionRequestReason':\(reason.map { "'\($0)'" } ?? "null"),"
            + "'transaction':\(transaction == nil ? "null" : "{\(object)}")}"
        var document = JSONDocument()
        try document.read(json(value).span)
        let notice = RefundNotice(document)
        try step(at: clock ?? signed + 500) { try $0.take(notice, &$1) }
    }

    mutating func use(_ row: String, at clock: Int64) throws {
        let row = UsageRow(try JSONValue.read(json(row)), timestamp: clock)
        step(at: clock) { $0.take(row, &$1) }
    }

    mutating func attempt(
        _ number: Int64, of uuid: Text, at instant: Int64, _ status: Int64?, error: Int64? = nil, retryAt: Int64? = nil
    ) {
        let attempt = Attempt(
            id: uuid, number: number, at: instant, httpStatus: status, errorCode: error, retryAt: retryAt)
        step(at: instant) { $0.take(attempt, &$1) }
    }

    mutating func wake(at clock: Int64) { step(at: clock) { $0.wake(&$1) } }
}

/// Answers of every kind, so that there are records of every kind.
func busyScene() throws -> Scene {
    var scene = Scene(
        policy: try policy(
            #"""
            {"version":"1","rules":[
              {"name":"legal","when":{"reason":"LEGAL"},"answer":{"withhold":true}},
              {"name":"part","when":{"productId":"vip"},"answer":{"refundPreference":"GRANT_PRORATED"}},
              {"name":"rest","when":{"productId":"coins.*"},"answer":{"refundPreference":"DECLINE"}}],
             "shadow":{"version":"2","rules":[{"name":"all","when":{"reason":"OTHER"},"answer":{"withhold":true}}]}}
            """#))
    try scene.use("{'consented':true,'deliveryStatus':'DELIVERED','consumptionPercentage':40000}", at: firstAsked - day)
    // Sent at the third attempt, then partly refunded, then reversed.
    try scene.tell("CONSUMPTION_REQUEST", "u-sent", reason: "UNINTENDED_PURCHASE")
    scene.attempt(1, of: "u-sent", at: firstAsked + 1_000, nil, retryAt: firstAsked + 2_000)
    scene.attempt(2, of: "u-sent", at: firstAsked + 2_000, 429, error: 4_290_000, retryAt: firstAsked + 9_000)
    scene.attempt(3, of: "u-sent", at: firstAsked + 9_000, 202)
    try scene.tell(
        "REFUND", "r-1", at: firstAsked + day,
        ["revocationDate": "\(firstAsked + day)", "revocationPercentage": "50000"])
    try scene.tell("REFUND_REVERSED", "r-2", at: firstAsked + 2 * day)
    // Failed for good, after an attempt that may have arrived.
    try scene.tell("CONSUMPTION_REQUEST", "u-failed", reason: "OTHER", ["transactionId": "'t2'"])
    scene.attempt(1, of: "u-failed", at: firstAsked + 1_000, nil, retryAt: firstAsked + 2_000)
    scene.attempt(2, of: "u-failed", at: firstAsked + 2_000, 400, error: 4_000_000)
    try scene.tell("REFUND_DECLINED", "r-3", at: firstAsked + day, ["transactionId": "'t2'"])
    // Withheld by policy; foreign app; family-shared; without a transaction; too late.
    try scene.tell("CONSUMPTION_REQUEST", "u-legal", reason: "LEGAL", ["transactionId": "'t3'"])
    try scene.tell("CONSUMPTION_REQUEST", "u-foreign", ["transactionId": "'t4'", "bundleId": "'com.other'"])
    try scene.tell(
        "CONSUMPTION_REQUEST", "u-family", ["transactionId": "'t5'", "inAppOwnershipType": "'FAMILY_SHARED'"])
    try scene.tell("CONSUMPTION_REQUEST", "u-none", nil)
    try scene.tell("CONSUMPTION_REQUEST", "u-late", clock: firstAsked + day, ["transactionId": "'t6'"])
    // Without a percentage a partial refund cannot be asked for; the deadline passes.
    try scene.use("{'transactionId':'t7','consumptionPercentage':0}", at: firstAsked)
    try scene.tell("CONSUMPTION_REQUEST", "u-part", ["transactionId": "'t7'", "productId": "'vip'"])
    // A subscription of Advanced Commerce: the older form.
    try scene.tell(
        "CONSUMPTION_REQUEST", "u-old",
        [
            "transactionId": "'t8'", "type": "'Auto-Renewable Subscription'", "advancedCommerceInfo": "{}",
            "offerType": "1", "offerDiscountType": "'FREE_TRIAL'",
        ])
    // Consent is withdrawn, and then given again.
    try scene.use("{'consented':false}", at: firstAsked + hour)
    try scene.use("{'consented':true}", at: firstAsked + 2 * hour)
    scene.wake(at: firstAsked + 13 * hour)
    return scene
}
