// What `perennial check` says about the refund policy.

import Consumption
import Notices
import Platform
import Settings

/// Only for a valid policy: errors were reported before.
struct PolicyFindings {
    let policy: RefundPolicy
    let lines: CheckLines

    func tell() {
        tell(policy, as: "policy")
        if let shadow = policy.shadow { tell(shadow, as: "shadow") }
    }

    private func tell(_ policy: RefundPolicy, as role: String) {
        let rules = policy.rules.count
        lines.tell(.ok, role, "\(policy.version), \(rules) rule\(rules == 1 ? "" : "s")")
        lines.more("unless usage says otherwise: " + policy.defaultsLine)
        for line in policy.table { lines.more(line) }
        for (rule, earlier) in policy.unreachable() {
            let reason =
                earlier.tests.isEmpty
                ? "matches every request" : "comes first and matches everything that this rule could match"
            lines.tell(
                .warning, role, "the rule \(quoted(rule.name)) can never match: \(quoted(earlier.name)) \(reason)")
        }
        for remark in policy.remarks() { lines.tell(.warning, role, words(remark)) }
    }

    private func words(_ remark: RefundPolicy.Remark) -> String {
        switch remark {
        case .impossible(let rule, let fact, let range):
            let hint =
                fact == .consumptionPercentage ? ": it is counted from 0 to 100000, thousandths of a percent" : ""
            return "the rule \(quoted(rule)) can never match: \(fact.rawValue) is never \(range)\(hint)"
        case .unusualWord(let rule, let fact, let word, let usual):
            let nearest = nearestName(to: word.description, among: usual).map { "; the nearest is \($0)" }
            return "the rule \(quoted(rule)) tests for a \(fact.rawValue) that Apple does not use today, "
                + quoted(word.description) + (nearest ?? "; today Apple uses \(usual.joined(separator: ", "))")
        }
    }
}
