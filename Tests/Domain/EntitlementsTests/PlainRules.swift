// A second implementation of the exact rules (Rules.md E.16): straight from the records, computed anew for every instant, without
// regard to time and memory. Limits are left out. It takes from the module, and so cannot check: the hash of a payload, which
// transactions are rows at all, and how a period is added to a date.

import Contract
import JSON
import Notices

@testable import Entitlements
@testable import SubscriptionHistory

struct PlainRules {
    struct Row {
        var id: String
        var members: JSONValue
        var first: Int64
        var upgraded: Int64?
        var start: Int64 { members["purchaseDate"]!.integer! }
        var expires: Int64? { members["expiresDate"]?.integer }
        var revoked: Int64? { members["revocationDate"]?.integer }
        var isUpgraded: Bool { members["isUpgraded"]?.bool ?? false }
        var isOneTime: Bool {
            let type = members["type"]?.string
            if ["Consumable", "Non-Consumable", "Non-Renewing Subscription"].contains(type) { return true }
            return type != "Auto-Renewable Subscription" && expires == nil
        }
        var isCommitment: Bool { !isOneTime && members["billingPlanType"]?.string == "MONTHLY" }
        var isFamily: Bool {
            ["FAMILY_REVOKE", "ASSIGNMENT_REVOKE"].contains(members["revocationType"]?.string)
                || ["FAMILY_SHARED", "ASSIGNED"].contains(members["inAppOwnershipType"]?.string)
        }
        var place: (Int64, Int, Int64, [UInt8]) { (start, isUpgraded ? 0 : 1, expires ?? 0, Array(id.utf8)) }
    }

    struct Info {
        var signed: Int64
        var hash: UInt64
        var status: Int64
        var members: JSONValue
        func integer(_ name: String) -> Int64? { members[name]?.integer }
        var isRetry: Bool { members["isInBillingRetryPeriod"]?.bool == true || status == 3 || status == 4 }
        var saysMore: Bool {
            isRetry || integer("gracePeriodExpiresDate") != nil || integer("expirationIntent") != nil
                || integer("autoRenewStatus") == 0
        }
        var place: (Int64, UInt64, Int64) { (signed, hash, status) }
    }

    struct State {
        var name: String
        var reason: String?
        var until: Int64?
        var isAccess: Bool { ["active", "grace", "owned"].contains(name) }
    }

    private static let day: Int64 = 86_400_000

    var rows: [Row] = []
    var kept: [Info] = []
    private var words: [(id: String, signed: Int64, subtype: String)] = []
    var introOfferUsed = false
    let app: App
    private let leeway: Int64
    private let isSandbox: Bool

    init(_ records: [String], _ app: App, leeway: Int64, isSandbox: Bool) throws {
        self.app = app
        self.leeway = leeway
        self.isSandbox = isSandbox
        var versions: [(signed: Int64, hash: UInt64, members: JSONValue)] = []
        var infos: [Info] = []
        for record in records {
            let told = try JSONValue.read(Array(record.utf8))
            let read = try reading(record).facts
            let at = told["signedDate"]!.integer!
            if let row = told["transaction"], row.object != nil {
                if row["offerType"]?.integer == 1 { introOfferUsed = true }
                if let hash = read.purchases.first?.version.hash {
                    versions.append((row["signedDate"]?.integer ?? at, hash, row))
                    if told["notificationType"]?.string == "EXPIRED" {
                        words.append((row["transactionId"]!.string!, at, told["subtype"]?.string ?? ""))
                    }
                }
            }
            if let info = told["renewalInfo"], info.object != nil, let hash = read.renewalInfos.first?.version.hash {
                infos.append(
                    Info(
                        signed: info["signedDate"]?.integer ?? at, hash: hash, status: told["status"]?.integer ?? 0,
                        members: info))
            }
        }
        for id in Set(versions.map { $0.members["transactionId"]!.string! }) {
            let own = versions.filter { $0.members["transactionId"]!.string! == id }
            let newest = own.max { ($0.signed, $0.hash) < ($1.signed, $1.hash) }!
            let upgraded = own.filter { $0.members["isUpgraded"]?.bool == true }.map(\.signed).min()
            rows.append(
                Row(id: id, members: newest.members, first: own.map(\.signed).min()!, upgraded: upgraded))
        }
        rows.sort { Self.isLess($0.place, $1.place) }
        infos.sort { $0.place < $1.place }
        for (place, info) in infos.enumerated() where place == infos.count - 1 || info.saysMore {
            if kept.last.map({ $0.place == info.place }) != true { kept.append(info) }
        }
    }

    // MARK: Rows and infos

    private func isFresh(_ info: Info, for row: Row) -> Bool {
        info.signed >= min(row.first, row.start) - 5_000
            && (info.integer("renewalDate") == nil || info.integer("renewalDate")! > row.start)
    }

    private func infos(of row: Row) -> [Info] {
        kept.filter { info in rows.last { isFresh(info, for: $0) }?.id == row.id }
    }

    func current(at t: Int64) -> Row { rows.last { $0.start <= t } ?? rows[0] }

    func r(of row: Row) -> Info? {
        guard !row.isOneTime, let newest = kept.last, isFresh(newest, for: row) else { return nil }
        return newest
    }

    func isRetrying(_ info: Info, _ row: Row) -> Bool {
        if row.isCommitment { return info.isRetry }
        return info.isRetry && info.integer("autoRenewStatus") != 0 && info.integer("expirationIntent") != 1
    }

    func grace(_ info: Info, _ row: Row) -> Int64? {
        guard !row.isCommitment, isRetrying(info, row), let until = info.integer("gracePeriodExpiresDate"),
            until > row.expires!
        else { return nil }
        return until
    }

    func window(of row: Row) -> Int64? {
        isSandbox ? nil : row.expires! + (row.isCommitment ? 90 : 60) * Self.day
    }

    private func isRenewalExpected(_ row: Row) -> Bool {
        guard let r = r(of: row) else { return false }
        return r.integer("autoRenewStatus") == 1 && !isRetrying(r, row) && r.integer("expirationIntent") == nil
            && !words.contains { $0.id == row.id } && !isLastPeriod(row, r)
    }

    private func isLastPeriod(_ row: Row, _ r: Info) -> Bool {
        guard row.isCommitment, r.members["commitmentInfo"]?["commitmentAutoRenewStatus"]?.integer == 0,
            let number = row.members["commitmentInfo"]?["billingPeriodNumber"]?.integer
        else { return false }
        return number >= row.members["commitmentInfo"]?["totalBillingPeriods"]?.integer ?? 12
    }

    func end(of row: Row) -> Int64? {
        if row.isOneTime {
            guard row.members["bundleId"]?.string == app.bundleId else { return nil }
            return app.periods.first { $0.productId == row.members["productId"]?.string }
                .map { adding($0.period, to: row.start) }
        }
        var end = row.expires!
        let own = infos(of: row)
        for (place, info) in own.enumerated() {
            guard let until = grace(info, row) else { continue }
            let next = own.dropFirst(place + 1).first?.signed
            end = max(end, min(until, next ?? until))
        }
        let later = rows.drop { $0.id != row.id }.dropFirst().first
        return min(end, later?.start ?? end)
    }

    private func ended(_ row: Row) -> Int64? {
        let failure = row.isCommitment ? infos(of: row).first { isRetrying($0, row) }?.signed : nil
        return [end(of: row), failure].compactMap { $0 }.min()
    }

    // MARK: State

    private func state(of row: Row, at t: Int64) -> State {
        var state = table(of: row, at: t)
        state.until = state.until.map { max($0, row.start) }
        return state
    }

    private func table(of row: Row, at t: Int64) -> State {
        func atMostEnded(_ date: Int64?) -> Int64? { [date, ended(row)].compactMap { $0 }.min() }
        if row.revoked != nil && row.isFamily {
            return State(name: "revoked", reason: "family", until: atMostEnded(row.revoked))
        }
        if row.isUpgraded { return State(name: "superseded", until: atMostEnded(row.revoked ?? row.upgraded)) }
        if row.revoked != nil { return State(name: "revoked", reason: "refund", until: atMostEnded(row.revoked)) }
        if row.isOneTime {
            guard let end = end(of: row) else { return State(name: "owned") }
            return State(name: t < end ? "active" : "expired", until: end)
        }
        let expires = row.expires!
        if let r = r(of: row), isRetrying(r, row) {
            if !row.isCommitment && t < expires { return State(name: "active", until: grace(r, row) ?? expires) }
            if let until = grace(r, row), t < until { return State(name: "grace", until: until) }
            if window(of: row).map({ t < $0 }) ?? true { return State(name: "billing_retry", until: ended(row)) }
            return State(name: "expired", reason: reason(row), until: ended(row))
        }
        let isExpected = isRenewalExpected(row)
        let instant = expires + (isExpected ? leeway : 0)
        if t < instant { return State(name: "active", until: instant) }
        return State(name: "expired", reason: reason(row), until: isExpected ? max(ended(row)!, instant) : ended(row))
    }

    private func reason(_ row: Row) -> String {
        let r = r(of: row)
        if let intent = r?.integer("expirationIntent") {
            return [1: "voluntary", 2: "billing", 3: "price", 4: "unavailable"][intent] ?? "other"
        }
        let own = words.filter { $0.id == row.id }
        if let word = own.max(by: { ($0.signed, Text($0.subtype)) < ($1.signed, Text($1.subtype)) }) {
            let names = [
                "VOLUNTARY": "voluntary", "BILLING_RETRY": "billing", "PRICE_INCREASE": "price",
                "PRODUCT_NOT_FOR_SALE": "unavailable",
            ]
            return names[word.subtype] ?? "other"
        }
        guard let r else { return "unknown" }
        if isRetrying(r, row) { return "billing" }
        return r.integer("autoRenewStatus") == 0 || isLastPeriod(row, r) ? "voluntary" : "unknown"
    }

    func followed(at t: Int64) -> State {
        let row = current(at: t)
        var state = state(of: row, at: t)
        guard state.isAccess else { return state }
        var place = rows.firstIndex { $0.id == row.id }! + 1
        while place < rows.count, state.until.map({ rows[place].start <= $0 }) ?? true {
            let start = rows[place].start
            let later = self.state(of: current(at: start), at: start)
            state.until = later.isAccess ? later.until : start
            if !later.isAccess { break }
            place = rows.lastIndex { $0.start == start }! + 1
        }
        return state
    }

    // MARK: Order

    private static func isLess(_ left: (Int64, Int, Int64, [UInt8]), _ right: (Int64, Int, Int64, [UInt8])) -> Bool {
        let numbers = (left.0, left.1, left.2)
        let others = (right.0, right.1, right.2)
        return numbers == others ? left.3.lexicographicallyPrecedes(right.3) : numbers < others
    }
}
