// The records of `entitlements`, `accounts` and `entitlement-events` as bytes.

internal import Contract
internal import Crypto
internal import JSON
internal import Notices
internal import Records

extension Cause {
    init(_ reading: NotificationReading, partition: Int32, offset: Int64) {
        self.init(
            notificationUUID: reading.notificationUUID, type: reading.type, subtype: reading.subtype,
            signedDate: reading.signedDate, partition: partition, offset: offset)
    }
}

/// An answer with the data of its topic and the data about the change.
struct EntitlementRecord: Sendable {
    let originalTransactionId: Text
    let entitlement: Entitlement
    /// Starts at 1 and grows with every value of the key.
    var sequence: Int64
    /// The partition's clock at the change.
    var asOf: Int64
    /// nil if time alone changed it.
    var cause: Cause?
    /// An object with all members of the answer.
    private let json: [UInt8]

    init(
        originalTransactionId: Text, environment: Contract.Environment, entitlement: Entitlement, sequence: Int64,
        asOf: Int64, cause: Cause?
    ) {
        var json = JSONWriter(capacity: Self.usualBytes + entitlement.runs.count * 48)
        json.object { json in
            json.member("v", RecordType.entitlement.version)
            json.member("originalTransactionId", utf8: originalTransactionId.bytes)
            json.member("environment", environment.nameOfApple)
            entitlement.write(to: &json)
        }
        self.originalTransactionId = originalTransactionId
        self.entitlement = entitlement
        self.sequence = sequence
        self.asOf = asOf
        self.cause = cause
        self.json = json.bytes
    }

    /// The usual size without runs and unusually long texts.
    private static let usualBytes = 1_100

    /// The first 8 bytes of the SHA-256 of the answer, without its closing bracket. Equal for two values that differ
    /// only in `sequence`, `asOf` and `cause`.
    var answer: UInt64 { SHA256.beginning(of: json.span.extracting(droppingLast: 1)) }

    /// The value for `accounts`, which has no cause.
    var accountValue: [UInt8] { withWay { _ in } }

    /// The value for `entitlements`: the same with the cause as the last member.
    var value: [UInt8] {
        withWay { way in
            way.name("cause")
            if let cause { cause.write(to: &way) } else { way.null() }
        }
    }

    private func withWay(_ writeMore: (inout JSONWriter) -> Void) -> [UInt8] {
        var way = JSONWriter(capacity: 320)
        way.object { way in
            way.member("sequence", sequence)
            way.member("asOf", asOf)
            writeMore(&way)
        }
        // The members are appended to those of the answer: a comma replaces the closing bracket.
        var bytes: [UInt8] = []
        bytes.reserveCapacity(json.count + way.bytes.count)
        bytes.append(contentsOf: json[..<(json.count - 1)])
        bytes.append(UInt8(ascii: ","))
        bytes.append(contentsOf: way.bytes[1...])
        return bytes
    }
}

extension EntitlementEvent {
    /// The value for `entitlement-events`.
    /// - Parameters:
    ///   - id: unique in the topic, and always the same for the same event.
    ///   - record: the `entitlements` record with the state after the event.
    ///   - before: nil if nothing was known.
    func value(id: String, record: EntitlementRecord, before: Told?) -> [UInt8] {
        var json = JSONWriter(capacity: 512)
        json.object { json in
            json.member("v", RecordType.entitlementEvent.version)
            json.member("id", id)
            json.member("originalTransactionId", utf8: record.originalTransactionId.bytes)
            json.member("kind", kind.rawValue)
            json.member("at", at)
            json.member("historic", isHistoric(at: record.asOf))
            json.name("before")
            if let before { write(before.state, before.access, to: &json) } else { json.null() }
            json.name("after")
            write(record.entitlement.state, record.entitlement.access, to: &json)
            json.member("sequence", record.sequence)
            json.name("cause")
            if let cause = record.cause { cause.write(to: &json) } else { json.null() }
        }
        return json.bytes
    }

    private func write(_ state: Entitlement.State, _ access: Bool, to json: inout JSONWriter) {
        json.object { json in
            json.member("state", state.rawValue)
            json.member("access", access)
        }
    }
}

extension Entitlement {
    fileprivate func write(to json: inout JSONWriter) {
        json.member("bundleId", utf8: bundleId?.bytes)
        json.member("productId", utf8: productId?.bytes)
        json.member("type", utf8: type?.bytes)
        json.member("subscriptionGroupIdentifier", utf8: subscriptionGroup?.bytes)
        json.member("appAccountToken", utf8: appAccountToken?.bytes)
        json.member("ownership", utf8: ownership?.bytes)
        json.name("entitlements")
        json.array { json in for name in entitlements { json.string(name) } }
        json.member("state", state.rawValue)
        json.member("reason", reason?.rawValue)
        json.member("access", access)
        json.member("accessUntil", orNull: accessUntil)
        json.member("since", since)
        json.member("autoRenew", orNull: autoRenew)
        json.member("pendingProductId", utf8: pendingProductId?.bytes)
        json.member("pendingBillingPlan", utf8: pendingBillingPlan?.bytes)
        json.member("priceConsent", priceConsent?.rawValue)
        json.member("billingPlan", utf8: billingPlan?.bytes)
        json.name("commitment")
        if let commitment { commitment.write(to: &json) } else { json.null() }
        json.member("graceUntil", orNull: graceUntil)
        json.name("retry")
        if let retry { retry.write(to: &json) } else { json.null() }
        json.name("offer")
        if let offer { offer.write(to: &json) } else { json.null() }
        json.member("introOfferUsed", introOfferUsed)
        json.member("price", orNull: price)
        json.member("currency", utf8: currency?.bytes)
        json.member("renewsAt", orNull: renewsAt)
        json.member("renewalPrice", orNull: renewalPrice)
        json.name("runs")
        json.array { json in
            for run in runs {
                json.object { json in
                    json.member("start", run.start)
                    json.member("end", orNull: run.end)
                }
            }
        }
        json.member("runsTruncated", runsTruncated)
    }
}

extension Entitlement.Commitment {
    fileprivate func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("period", orNull: period)
            json.member("of", orNull: of)
            json.member("endsAt", orNull: endsAt)
            json.member("price", orNull: price)
            json.member("renews", orNull: renews)
        }
    }
}

extension Entitlement.Retry {
    fileprivate func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("since", since)
            json.member("until", until)
        }
    }
}

extension Entitlement.Offer {
    fileprivate func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("type", utf8: type.bytes)
            json.member("identifier", utf8: identifier?.bytes)
            json.member("discount", utf8: discount?.bytes)
        }
    }
}
