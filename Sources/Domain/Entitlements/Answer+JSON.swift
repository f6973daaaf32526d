// The answer as members of a record of `entitlements`.

internal import Contract
internal import JSON
internal import Records
import SubscriptionHistory

extension Course {
    /// Writes the members of a record that follow from the history: from `v` to `runsTruncated`.
    func write(
        _ answer: Answer, originalTransactionId: UnsafeBufferPointer<UInt8>, _ environment: Contract.Environment,
        to json: inout JSONWriter
    ) {
        json.member("v", RecordType.entitlement.version)
        json.member("originalTransactionId", utf8: originalTransactionId)
        json.member("environment", environment.nameOfApple)
        json.member("bundleId", utf8: history.texts.bytes(answer.bundleId))
        json.member("productId", utf8: history.texts.bytes(answer.productId))
        json.member("type", utf8: history.texts.bytes(answer.type))
        json.member("subscriptionGroupIdentifier", utf8: history.texts.bytes(answer.subscriptionGroup))
        json.member("appAccountToken", utf8: history.texts.bytes(answer.appAccountToken))
        json.member("ownership", utf8: history.texts.bytes(answer.ownership))
        json.name("entitlements")
        rules.writeEntitlements(of: answer.product, to: &json)
        json.member("state", answer.state.rawValue)
        json.member("reason", answer.reason?.rawValue)
        json.member("access", answer.access)
        json.member("accessUntil", orNull: answer.accessUntil)
        json.member("since", answer.since)
        json.member("autoRenew", orNull: answer.autoRenew)
        json.member("pendingProductId", utf8: history.texts.bytes(answer.pendingProductId))
        json.member("pendingBillingPlan", utf8: history.texts.bytes(answer.pendingBillingPlan))
        json.member("priceConsent", answer.priceConsent?.rawValue)
        json.member("billingPlan", utf8: answer.billingPlan?.bytes)
        write(answer.commitment, to: &json)
        json.member("graceUntil", orNull: answer.graceUntil)
        write(answer.retry, to: &json)
        write(answer.offer, to: &json)
        json.member("introOfferUsed", answer.introOfferUsed)
        json.member("price", orNull: answer.price)
        json.member("currency", utf8: history.texts.bytes(answer.currency))
        json.member("renewsAt", orNull: answer.renewsAt)
        json.member("renewalPrice", orNull: answer.renewalPrice)
        writeRuns(to: &json)
        json.member("runsTruncated", runsTruncated)
    }

    private func write(_ commitment: Entitlement.Commitment?, to json: inout JSONWriter) {
        json.name("commitment")
        guard let commitment else { return json.null() }
        json.object { json in
            json.member("period", orNull: commitment.period)
            json.member("of", orNull: commitment.of)
            json.member("endsAt", orNull: commitment.endsAt)
            json.member("price", orNull: commitment.price)
            json.member("renews", orNull: commitment.renews)
        }
    }

    private func write(_ retry: Entitlement.Retry?, to json: inout JSONWriter) {
        json.name("retry")
        guard let retry else { return json.null() }
        json.object { json in
            json.member("since", retry.since)
            json.member("until", retry.until)
        }
    }

    private func write(_ offer: Particulars.Offer?, to json: inout JSONWriter) {
        json.name("offer")
        guard let offer else { return json.null() }
        let (identifier, discount) = (history.texts.bytes(offer.identifier), history.texts.bytes(offer.discount))
        json.object { json in
            json.member("type", OfferType.word(of: offer.type))
            json.member("identifier", utf8: identifier)
            json.member("discount", utf8: discount)
        }
    }

    private func writeRuns(to json: inout JSONWriter) {
        json.name("runs")
        let runs = UnsafeMutableBufferPointer(rebasing: runs.values.suffix(Self.limitRuns))
        json.array { json in
            for run in runs {
                json.object { json in
                    json.member("start", run.start)
                    json.member("end", orNull: run.end)
                }
            }
        }
    }
}
