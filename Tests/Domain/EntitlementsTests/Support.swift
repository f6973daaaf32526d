// Notifications as in the topic, made from short texts, and the answer to several of them.

import Contract
import JSON
import Notices
import Testing

@testable import Entitlements
@testable import SubscriptionHistory

let hour: Int64 = 3_600_000
/// Midnight UTC, this many days after the 1st of January 2026. Periods of these tests last 30 days.
func d(_ day: Int64) -> Int64 { 1_767_225_600_000 + day * 24 * hour }

/// A date from year, month and day, counted day by day, so that the tests do not use the module that they test.
func date(_ year: Int, _ month: Int, _ day: Int) -> Int64 {
    func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }
    var days = day - 1
    for year in 1970..<year { days += isLeap(year) ? 366 : 365 }
    for month in 1..<month { days += [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] }
    return Int64(days) * 24 * hour
}

let app = App(
    bundleId: "com.example.app", appAppleId: 1,
    entitlements: [
        App.Entitlement(name: "premium", productIds: ["pro", "plus"]),
        App.Entitlement(name: "archive", productIds: ["pro"]),
    ],
    periods: [App.ProductPeriod(productId: "season", period: Period("P1M")!)])

func rules(_ environment: Environment = .production, leeway: Int64 = hour) -> EntitlementRules {
    EntitlementRules(apps: [app], leeway: leeway, environment: environment)
}

/// A decoded payload with the date of its notification, unless it has its own. Texts are quoted with `'`.
struct Part {
    let members: String
    var signed: Int64?

    func json(_ notificationSigned: Int64) -> String {
        "{\(members),'signedDate':\(signed ?? notificationSigned)}"
    }
}

/// A transaction of the monthly product `pro`. A member in `more` replaces the usual one.
func bought(_ id: String, _ from: Int64, _ to: Int64?, signed: Int64? = nil, _ more: String = "") -> Part {
    let usual = [
        ("bundleId", "'com.example.app'"), ("productId", "'pro'"), ("type", "'Auto-Renewable Subscription'"),
        ("inAppOwnershipType", "'PURCHASED'"), ("expiresDate", to.map { "\($0)" } ?? "null"),
    ]
    let members = usual.filter { !more.contains("'\($0.0)'") }.map { "'\($0.0)':\($0.1)" }
    let all = ["'transactionId':'\(id)','purchaseDate':\(from)"] + members + (more.isEmpty ? [] : [more])
    return Part(members: all.joined(separator: ","), signed: signed)
}

/// The period with this number, from 1.
func period(_ number: Int64, signed: Int64? = nil, _ more: String = "") -> Part {
    bought("\(number)", d(30 * (number - 1)), d(30 * number), signed: signed, more)
}

/// The same of a commitment.
func month(_ number: Int64, signed: Int64? = nil, _ more: String = "") -> Part {
    let commitment =
        "'billingPlanType':'MONTHLY','commitmentInfo':{'billingPeriodNumber':\(number),'totalBillingPeriods':12,"
        + "'commitmentExpiresDate':\(d(360)),'commitmentPrice':120000}"
    return period(number, signed: signed, more.isEmpty ? commitment : "\(commitment),\(more)")
}

func once(_ id: String, _ from: Int64, type: String = "Non-Consumable", product: String = "pro", _ more: String = "")
    -> Part
{
    bought(id, from, nil, "'type':'\(type)','productId':'\(product)'" + (more.isEmpty ? "" : ",\(more)"))
}

func renewal(_ autoRenewStatus: Int, at renewalDate: Int64?, signed: Int64? = nil, _ more: String = "") -> Part {
    let date = renewalDate.map { "\($0)" } ?? "null"
    return Part(
        members: "'autoRenewStatus':\(autoRenewStatus),'renewalDate':\(date)" + (more.isEmpty ? "" : ",\(more)"),
        signed: signed)
}

/// The renewal at this date failed.
func failing(_ renewalDate: Int64, grace: Int64? = nil, signed: Int64? = nil, _ more: String = "") -> Part {
    let grace = grace.map { ",'gracePeriodExpiresDate':\($0)" } ?? ""
    return renewal(
        1, at: renewalDate, signed: signed,
        "'isInBillingRetryPeriod':true\(grace)" + (more.isEmpty ? "" : ",\(more)"))
}

/// A renewal info of a commitment that another one will (1) or will not (0) follow.
func committed(_ status: Int, at renewalDate: Int64, _ more: String = "", renews: Int = 1) -> Part {
    renewal(
        renews, at: renewalDate,
        "'commitmentInfo':{'commitmentAutoRenewStatus':\(status)}" + (more.isEmpty ? "" : ",\(more)"))
}

/// The value of a record of `notifications`.
func told(
    _ type: String, _ subtype: String? = nil, at signed: Int64, _ transaction: Part? = nil, _ info: Part? = nil,
    status: Int? = nil
) -> String {
    let record =
        "{'v':1,'notificationType':'\(type)','subtype':\(subtype.map { "'\($0)'" } ?? "null"),'signedDate':\(signed),"
        + "'status':\(status.map { "\($0)" } ?? "null"),'transaction':\(transaction?.json(signed) ?? "null"),"
        + "'renewalInfo':\(info?.json(signed) ?? "null")}"
    return record.replacing("'", with: "\"")
}

/// What one record says.
struct Reading {
    let facts: Facts
    let hasUnusableTransaction: Bool
    let signedDate: Int64?
    let status: Int64?
}

func reading(_ record: String) throws -> Reading { try reading(Array(record.utf8)) }

func reading(_ record: [UInt8]) throws -> Reading {
    var document = JSONDocument()
    try document.read(record.span)
    let reader = NoticeReader()
    let news = reader.read(document)
    let facts = Facts(news)
    withExtendedLifetime(reader) {}
    #expect(facts == NotificationReading(document).facts)
    #expect(news.isEmpty == facts.isEmpty)
    return Reading(
        facts: facts, hasUnusableTransaction: news.hasUnusableTransaction, signedDate: news.signedDate,
        status: news.status)
}

func facts(_ records: [String]) throws -> Facts {
    var facts = Facts()
    for record in records {
        facts.merge(try reading(record).facts)
        // Else the next merge would stop the process, and with it all other tests.
        try #require(Facts(bytes: facts.bytes) == facts, "what is kept can be read again")
    }
    return facts
}

/// What is known after these records, whatever their order: forwards, backwards and with repetitions.
func timeline(_ records: String..., rules: EntitlementRules = rules()) throws -> Timeline {
    let forwards = try facts(records)
    #expect(try facts(records.reversed() + records) == forwards, "order and repetition must not matter")
    return try #require(Timeline(forwards, rules))
}

/// State, reason and access in one line, as `active until 30d` or `expired voluntary since 30d`: days of `d`, with hours.
func words(_ answer: Entitlement) -> String {
    func time(_ instant: Int64) -> String {
        let (days, rest) = (instant - d(0)).quotientAndRemainder(dividingBy: 24 * hour)
        if rest == 0 { return "\(days)d" }
        return rest % hour == 0 ? "\(days)d\(rest / hour)h" : "\(days)d+\(rest)ms"
    }
    let state = [answer.state.rawValue, answer.reason?.rawValue].compactMap { $0 }.joined(separator: " ")
    let end = answer.accessUntil.map(time) ?? "ever"
    return "\(state) \(answer.access ? "until" : "since") \(end)"
}

extension Timeline {
    func words(at instant: Int64) -> String { EntitlementsTests.words(entitlement(at: instant)) }
}

extension Facts {
    /// The part of a state that is the facts, each row written from its values.
    var encoded: [UInt8] {
        withHistory { history in
            var writer = ByteWriter()
            history.write(to: &writer, copiesKept: false)
            return writer.bytes
        }
    }

    init?(encoded: [UInt8]) { self.init(bytes: encoded) }

    var isEmpty: Bool { self == Facts() }

    /// Without their texts.
    var renewalInfos: [RenewalRow] { withHistory { Array($0.renewals.values) } }
    var introOfferUsed: Bool { withHistory { $0.introOfferUsed } }
    /// True if purchases were forgotten.
    var isTruncated: Bool { withHistory { $0.isTruncated } }
}

/// A row of a timeline.
struct SeenRow {
    let id: TransactionId
    let start: Int64
    let end: Int64?
    let isOneTime: Bool
    let firstSigned: Int64
    /// The signing dates of the renewal infos about it.
    let infos: [Int64]
}

extension Timeline {
    var rows: [SeenRow] {
        course.rows.indices.map { place in
            let row = course.rows[place]
            return SeenRow(
                id: row.id.copy, start: row.start, end: row.end, isOneTime: row.isOneTime,
                firstSigned: row.firstSigned, infos: course.renewals(of: row).map(\.version.signedDate))
        }
    }

    func place(at instant: Int64) -> Int { course.place(at: instant) }
    func nextStep(after instant: Int64) -> Int64? { course.nextStep(after: instant) }
    func agrees(withStatus status: Int64, at instant: Int64) -> Bool? {
        course.agrees(withStatus: status, at: instant)
    }

    /// Valid as long as the timeline.
    func standing(at instant: Int64) -> Standing { course.standing(at: instant) }
}

extension Course {
    fileprivate func renewals(of row: Row) -> [RenewalRow] {
        history.renewals.indices.filter {
            owner(of: Entitlements.Info(history.renewals.place(of: $0))).map { rows[$0].id == row.id } ?? false
        }
        .map { history.renewals[$0] }
    }
}

extension Standing {
    func events(since before: Told?, told: Int64) -> [EntitlementEvent] {
        var events = Scratch<EntitlementEvent>()
        addEvents(since: before, told: told, to: &events)
        return Array(events.values)
    }

    func told(after before: Told?, _ events: [EntitlementEvent], answer: UInt64) -> Told {
        var list = Scratch<EntitlementEvent>()
        for event in events { list.append(event) }
        return told(after: before, list, answer: answer)
    }
}
