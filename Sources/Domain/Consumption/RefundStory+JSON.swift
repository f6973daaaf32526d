// A refund request as JSON, for the read API and for tools.

public import JSON
internal import Notices

extension RefundStory {
    /// Unknown values are null. The steps are records, so a step leaves out the members that its kind does not have.
    public func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("id", utf8: id.bytes)
            json.member("originalTransactionId", utf8: originalTransactionId.bytes)
            json.member("transactionId", utf8: transactionId?.bytes)
            json.member("requestReason", utf8: requestReason?.bytes)
            json.member("requestedAt", requestedAt)
            json.member("deadline", deadline)
            json.member("state", standing.rawValue)
            json.member("withheld", utf8: withholding?.bytes)
            json.member("decidedAt", orNull: decision?.at)
            json.name("policy")
            if let policy { policy.write(to: &json) } else { json.null() }
            json.member("facts", json: facts)
            json.member("body", json: decision?.body)
            json.member("endedAt", orNull: ending?.at)
            json.member("margin", orNull: margin)
            json.member("outcome", utf8: outcome?.bytes)
            json.name("outcomes")
            json.array { json in for outcome in outcomes { outcome.writeStep(to: &json) } }
            json.name("shadow")
            if let shadow {
                json.object { json in
                    json.name("policy")
                    if let policy = shadow.policy { policy.write(to: &json) } else { json.null() }
                    json.member("withheld", utf8: shadow.detail?.bytes)
                    json.member("body", json: shadow.body)
                }
            } else {
                json.null()
            }
            json.name("steps")
            json.array { json in for step in steps { step.writeStep(to: &json) } }
            json.member("stepsLeftOut", droppedSteps)
        }
    }
}

extension ConsumptionRecord {
    fileprivate func writeStep(to json: inout JSONWriter) {
        json.object { json in
            json.member("kind", kind.rawValue)
            json.member("at", at)
            if let detail { json.member("detail", utf8: detail.bytes) }
            if let attempt {
                json.member("attempt", attempt)
                json.member("httpStatus", orNull: httpStatus)
            }
            if let errorCode { json.member("errorCode", errorCode) }
            if let retryAt { json.member("retryAt", retryAt) }
            if let amount {
                json.member("amount", amount.value)
                json.member("currency", utf8: amount.currency?.bytes)
            }
        }
    }
}

extension ConsumptionRecord.Policy {
    func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("version", utf8: version.bytes)
            json.member("rule", utf8: rule?.bytes)
        }
    }
}
