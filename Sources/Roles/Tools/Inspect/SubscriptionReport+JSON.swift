// The report as one JSON object, for programs.

import Contract
import Entitlements
import JSON
import Notices
import ReadAPI

extension SubscriptionReport {
    var json: String {
        var writer = JSONWriter()
        writer.object { report in
            report.member("originalTransactionId", id)
            report.member("environment", environment.rawValue)
            report.member("at", orNull: answer?.instant ?? clock)
            report.name("position")
            report.array { list in
                list.object { place in
                    place.member("topic", topic)
                    place.member("partition", partition)
                    place.member("offset", position)
                    place.member("asOf", orNull: clock)
                }
            }
            report.member("entitlement", json: answer?.record)
            writeReasons(&report)
            report.name("content")
            report.array { list in for item in content { list.object { Self.write(item, to: &$0) } } }
            report.name("notifications")
            report.array { list in for told in told { list.object { Self.write(told, to: &$0) } } }
            report.member("olderNotifications", olderCount)
            report.member("unreadableNotifications", unreadable)
            report.name("history")
            if let history {
                report.array { list in for entry in history { entry.write(to: &list) } }
            } else {
                report.null()
            }
            report.name("published")
            report.object { writePublished(&$0) }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private func writeReasons(_ report: inout JSONWriter) {
        report.name("why")
        if let answer {
            report.object { why in
                why.member("rule", answer.basis.rule.rawValue)
                why.member("stateSince", orNull: answer.basis.stateSince)
                why.member("transactionId", "\(answer.basis.purchase.transaction.id)")
                why.member("words", self.why(answer))
                why.member("notificationUUID", decider?.uuid)
                why.member("offset", orNull: decider?.offset)
            }
        } else {
            report.null()
        }
        report.name("next")
        report.array { list in
            for change in answer?.changes ?? [] {
                list.object { next in
                    next.member("at", change.at)
                    next.member("state", change.entitlement.state.rawValue)
                    next.member("reason", change.entitlement.reason?.rawValue)
                    next.member("access", change.entitlement.access)
                    next.member("accessUntil", orNull: change.entitlement.accessUntil)
                }
            }
        }
        report.name("purchases")
        report.array { list in for purchase in answer?.purchases ?? [] { list.object { Self.write(purchase, to: &$0) } }
        }
    }

    private static func write(_ purchase: Timeline.Purchase, to object: inout JSONWriter) {
        let transaction = purchase.transaction
        object.member("transactionId", "\(transaction.id)")
        object.member("productId", transaction.productId.map { "\($0)" })
        object.member("start", purchase.start)
        object.member("end", orNull: purchase.end)
        object.member("expiresDate", orNull: transaction.expiresDate)
        object.member("fate", purchase.fate.rawValue)
        object.member("fateDate", orNull: purchase.fateDate)
        object.member("price", orNull: transaction.price)
        object.member("currency", transaction.currency.map { "\($0)" })
        object.member("period", orNull: transaction.commitment?.period)
    }

    private static func write(_ item: ContentAnswer, to object: inout JSONWriter) {
        object.member("published", item.published)
        object.member("accessible", item.isAccessible)
        object.member("inCurrentRun", item.isInCurrentRun)
        object.member("cause", item.cause?.rawValue)
        object.name("run")
        if let run = item.run {
            object.object { span in
                span.member("start", run.start)
                span.member("end", orNull: run.end)
            }
        } else {
            object.null()
        }
    }

    private static func write(_ told: ToldNotification, to object: inout JSONWriter) {
        object.member("notificationUUID", told.uuid)
        object.member("type", told.type)
        object.member("subtype", told.subtype)
        object.member("signedDate", orNull: told.signedDate)
        object.member("receivedDate", told.timestamp)
        object.member("source", told.source)
        object.member("transactionId", told.transactionId)
        object.member("partition", told.partition)
        object.member("offset", told.offset)
    }

    private func writePublished(_ object: inout JSONWriter) {
        object.member("agreement", agreement.name)
        object.name("differs")
        object.array { list in for name in agreement.members { list.string(name) } }
        if case .behind(let count) = agreement { object.member("notificationsBehind", count) }
        object.member("offset", orNull: published?.offset)
        object.member("rules", published?.rules)
        object.member("value", json: published?.bytes)
    }
}

extension Agreement {
    var name: String {
        switch self {
        case .same: "same"
        case .absent: "absent"
        case .behind: "behind"
        case .otherRules: "other_rules"
        case .different: "different"
        case .nothing: "nothing"
        case .unfounded: "unfounded"
        }
    }

    var members: [String] {
        switch self {
        case .otherRules(let names), .different(let names): names
        default: []
        }
    }
}
