// GET /v1/accounts/{appAccountToken}: who owns what, over all apps.

internal import JSON

/// Takes the records of one account, one after the other, and tells what they amount to.
struct AccountAnswer: ~Copyable {
    /// Of one answer. An account has a handful of records, thousands where consumables are sold; a token that a defect gives to
    /// all customers has millions, and would stop everything else.
    static let limitRecords = 10_000
    static let limitBytes = 8 << 20

    private let now: Int64
    private var json = JSONDocument()
    private var subscriptions: [Subscription] = []
    /// The records as they came, separated by commas.
    private var records: [UInt8] = []
    private(set) var isTruncated = false

    init(at now: Int64) { self.now = now }

    /// false: no more are taken.
    mutating func take(_ record: Span<UInt8>) -> Bool {
        guard subscriptions.count < Self.limitRecords, records.count + record.count <= Self.limitBytes else {
            isTruncated = true
            return false
        }
        // What the follower has let in can be read.
        do throws(JSONFault) { try json.read(record) } catch { return true }
        subscriptions.append(Subscription(json.root, in: json))
        if !records.isEmpty { records.append(UInt8(ascii: ",")) }
        record.withUnsafeBufferPointer { records.append(contentsOf: $0) }
        return true
    }

    /// - Parameter token: a UUID, which needs no escape.
    consuming func body(token: String, position: [UInt8]) -> [UInt8] {
        let longest = longestOfEachName()
        var writer = JSONWriter(capacity: records.count + 1024)
        writer.object { writer in
            writer.member("appAccountToken", token)
            writer.name("entitlements")
            writer.object { writer in
                for (name, index) in longest { write(name, subscriptions[index], to: &writer) }
            }
            writer.member("subscriptions", json: Array("[".utf8) + records + Array("]".utf8))
            if isTruncated { writer.member("subscriptionsTruncated", true) }
            writer.name("advice")
            writer.array { writer in
                for (index, subscription) in subscriptions.enumerated() where !isCovered(index, by: longest) {
                    guard let need = subscription.need(at: now) else { continue }
                    writer.object { writer in
                        writer.member("kind", need.rawValue)
                        writer.member("originalTransactionId", json: subscription.id)
                        writer.member("url", need.url)
                    }
                }
            }
            writer.member("position", json: position)
        }
        return writer.bytes
    }

    private func write(_ name: [UInt8], _ subscription: Subscription, to writer: inout JSONWriter) {
        writer.name(String(decoding: name, as: UTF8.self))
        writer.object { writer in
            writer.member("access", subscription.hasAccess(at: now))
            writer.name("accessUntil")
            if let until = subscription.accessUntil { writer.integer(until) } else { writer.null() }
            writer.member("originalTransactionId", json: subscription.id)
            writer.member("bundleId", json: subscription.bundleId)
        }
    }

    /// By name, in the order of their bytes, with the subscription that gives it for longest; of several the first.
    private func longestOfEachName() -> [(name: [UInt8], index: Int)] {
        var longest: [[UInt8]: Int] = [:]
        for (index, subscription) in subscriptions.enumerated() {
            for name in subscription.entitlements {
                if let other = longest[name], !subscription.outlasts(subscriptions[other], at: now) { continue }
                longest[name] = index
            }
        }
        return longest.map { ($0.key, $0.value) }.sorted { $0.0.lexicographicallyPrecedes($1.0) }
    }

    /// Everything that it gives another one gives for longer: whoever pays for it as well pays twice.
    private func isCovered(_ index: Int, by longest: [(name: [UInt8], index: Int)]) -> Bool {
        let names = subscriptions[index].entitlements
        return !names.isEmpty
            && names.allSatisfy { name in
                longest.contains { $0.name == name && $0.index != index && subscriptions[$0.index].hasAccess(at: now) }
            }
    }
}
