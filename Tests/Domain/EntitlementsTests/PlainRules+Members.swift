// The other members of the answer, according to the exact rules (Rules.md E.16).

import Contract
import JSON

@testable import Entitlements

extension PlainRules {
    /// By name, as fixtures compare them; nil: nothing is known.
    func members(at t: Int64) -> [String: JSONValue]? {
        guard !rows.isEmpty else { return nil }
        let row = current(at: t)
        let r = r(of: row)
        let state = followed(at: t)
        let isOn = r?.integer("autoRenewStatus").flatMap { [0: false, 1: true][$0] }
        let isRetrying = r.map { self.isRetrying($0, row) } ?? false
        let plan = row.isOneTime ? nil : row.members["billingPlanType"]?.string ?? "BILLED_UPFRONT"
        let commitment = row.isCommitment ? r?.members["commitmentInfo"] : nil
        func pending(_ ofCommitment: String, _ name: String, _ now: String?) -> JSONValue {
            guard let r else { return .null }
            var next = r.members[name]?.string
            var isOff = r.integer("autoRenewStatus") == 0
            if let other = commitment?[ofCommitment]?.string {
                next = other
                isOff = commitment?["commitmentAutoRenewStatus"]?.integer == 0
            }
            return isOff || next == now ? .null : text(next)
        }
        let isShared = row.members["inAppOwnershipType"]?.string == "FAMILY_SHARED"
        let token = row.members["appAccountToken"]?.string ?? r?.members["appAccountToken"]?.string
        let granted = r.flatMap { row.isOneTime ? nil : grace($0, row) }
        let window = row.isOneTime ? nil : window(of: row)
        let isTold = ["active", "grace", "billing_retry"].contains(state.name)
        let retry: JSONValue =
            isRetrying && isTold && window.map { t < $0 } == true
            ? .object(
                JSONObject([
                    JSONObject.Member(name: "since", value: .integer(row.expires!)),
                    JSONObject.Member(name: "until", value: .integer(window!)),
                ])) : .null
        let isGraceTold = ["active", "grace"].contains(state.name) && isRetrying && granted.map { t < $0 } == true
        return [
            "state": .string(state.name), "reason": text(state.reason), "access": .bool(state.isAccess),
            "accessUntil": integer(state.until), "since": .integer(since(of: row)), "runs": .array(runs()),
            "appAccountToken": isShared ? .null : text(token?.lowercased()),
            "entitlements": .array(
                row.members["bundleId"]?.string != app.bundleId
                    ? []
                    : app.entitlements.filter { $0.productIds.contains(row.members["productId"]?.string ?? "") }
                        .map(\.name).sorted().map(JSONValue.string)),
            "autoRenew": isOn.map(JSONValue.bool) ?? .null,
            "renewsAt": isOn == true ? integer(r?.integer("renewalDate")) : .null,
            "renewalPrice": isOn == true ? integer(r?.integer("renewalPrice")) : .null,
            "pendingProductId": pending(
                "commitmentAutoRenewProductId", "autoRenewProductId", row.members["productId"]?.string),
            "pendingBillingPlan": pending("commitmentRenewalBillingPlanType", "renewalBillingPlanType", plan),
            "graceUntil": isGraceTold ? integer(granted) : .null, "retry": retry, "billingPlan": text(plan),
            "price": integer(row.members["price"]?.integer), "introOfferUsed": .bool(introOfferUsed),
            "offer": offer(of: row), "commitment": self.commitment(of: row, r),
            "priceConsent": text(r?.integer("priceIncreaseStatus").flatMap { [0: "waiting", 1: "settled"][$0] }),
            // Random lives have fewer rows and runs than the limits.
            "runsTruncated": .bool(false),
        ]
    }

    private func offer(of row: Row) -> JSONValue {
        guard let type = row.members["offerType"]?.integer else { return .null }
        let word = [1: "introductory", 2: "promotional", 3: "code", 4: "win_back"][type] ?? "\(type)"
        return object([
            ("type", text(word)), ("identifier", text(row.members["offerIdentifier"]?.string)),
            ("discount", text(row.members["offerDiscountType"]?.string)),
        ])
    }

    private func commitment(of row: Row, _ r: Info?) -> JSONValue {
        guard row.isCommitment, let info = row.members["commitmentInfo"], info.object != nil else { return .null }
        let renews = r?.members["commitmentInfo"]?["commitmentAutoRenewStatus"]?.integer
        return object([
            ("period", integer(info["billingPeriodNumber"]?.integer)),
            ("of", integer(info["totalBillingPeriods"]?.integer)),
            ("endsAt", integer(info["commitmentExpiresDate"]?.integer)),
            ("price", integer(info["commitmentPrice"]?.integer)),
            ("renews", renews.flatMap { [0: false, 1: true][$0] }.map(JSONValue.bool) ?? .null),
        ])
    }

    private func object(_ members: [(String, JSONValue)]) -> JSONValue {
        .object(JSONObject(members.map { JSONObject.Member(name: $0.0, value: $0.1) }))
    }

    private func endOfAccess(_ row: Row) -> Int64? { [end(of: row), row.revoked].compactMap { $0 }.min() }

    private func since(of row: Row) -> Int64 {
        var since = rows[0].start
        var latest: Int64? = rows[0].start
        for other in rows {
            if let end = latest, other.start > end {
                since = other.start
                latest = other.start
            }
            if let end = endOfAccess(other) { latest = latest.map { max($0, end) } } else { latest = nil }
            if other.id == row.id { return since }
        }
        return since
    }

    private func runs() -> [JSONValue] {
        var runs: [(start: Int64, end: Int64?)] = []
        for row in rows where row.revoked == nil || row.isUpgraded {
            let end = row.revoked == nil ? end(of: row) : endOfAccess(row)
            if let end, end <= row.start { continue }
            if let last = runs.last, last.end.map({ row.start <= $0 }) ?? true {
                let both = [last.end, end]
                runs[runs.count - 1].end = both.contains(nil) ? nil : both.compactMap { $0 }.max()
            } else {
                runs.append((row.start, end))
            }
        }
        return runs.map { .array([.integer($0.start), integer($0.end)]) }
    }

    private func text(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }
    private func integer(_ value: Int64?) -> JSONValue { value.map(JSONValue.integer) ?? .null }
}
