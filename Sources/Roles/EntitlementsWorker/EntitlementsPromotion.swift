// What a promotion of `entitlements` moves: values with a greater sequence, the accounts that follow from them, and
// states that continue from there.

import Contract
import Entitlements
import JSON
import Log
import Notices
public import Runtime

public final class EntitlementsPromotion: PromotionRules {
    private static let entitlements = 0
    private static let accounts = 2

    public let values = EntitlementsPromotion.entitlements
    public let compacted = [EntitlementsPromotion.entitlements, EntitlementsPromotion.accounts]
    private let partitions: Int32

    public init(partitions: Int32) { self.partitions = partitions }

    /// The app that a value belongs to; nil: the value does not name it.
    public static func bundleId(of value: [UInt8]) -> String? {
        var json = JSONDocument()
        do throws(JSONFault) { try json.read(value.span) } catch { return nil }
        return json.text("bundleId", of: json.root)?.description
    }

    public func replacement(of key: [UInt8], live: [UInt8]?, shadow: [UInt8]?) -> [PromotedRecord] {
        let (old, new) = (live.map { Value($0) }, shadow.map { Value($0) })
        guard let new else {
            guard let old else { return [] }
            return [PromotedRecord(output: Self.entitlements, key: key, value: nil)] + unbinding(old, key)
        }
        if let old, old.answer.elementsEqual(new.answer) { return [] }
        let value = old.map { new.replacing(sequence: adding($0.sequence, 1)) } ?? new
        var records = [PromotedRecord(output: Self.entitlements, key: key, value: value.bytes)]
        let account = value.account
        if let old, old.account != account { records += unbinding(old, key) }
        if let account { records.append(binding(account, key, value.withoutCause)) }
        return records
    }

    private func unbinding(_ value: Value, _ key: [UInt8]) -> [PromotedRecord] {
        value.account.map { [binding($0, key, nil)] } ?? []
    }

    private func binding(_ account: [UInt8], _ key: [UInt8], _ value: [UInt8]?) -> PromotedRecord {
        PromotedRecord(
            output: Self.accounts, partition: Partitioner.partition(of: account, count: partitions),
            key: account + [UInt8(ascii: "|")] + key, value: value)
    }

    public func state(_ state: [UInt8], format: UInt8, of key: [UInt8], after value: [UInt8]?) -> [UInt8] {
        guard let value else { return state }
        // The rules and the environment do not matter: nothing is told.
        var teller = SubscriptionTeller(
            EntitlementRules(apps: [], leeway: 0, environment: .production), .production)
        // A state that cannot be read goes to the dead letters when its next notification arrives, as it would have
        // before.
        return teller.state(state, format: format, after: Value(value).sequence) ?? state
    }

    /// A value of `entitlements` as this worker writes it: the answer, followed by `sequence`, `asOf` and `cause`.
    private struct Value {
        private static let sequenceName = Array(#","sequence":"#.utf8)
        private static let causeName = Array(#","cause":"#.utf8)

        let bytes: [UInt8]
        /// Place of `,"sequence":`, which occurs once outside of strings: in a string a quotation mark is preceded by a
        /// backslash.
        private let place: Int

        init(_ bytes: [UInt8]) {
            self.bytes = bytes
            place = Self.lastPlace(of: Self.sequenceName, in: bytes) ?? bytes.count
        }

        var answer: ArraySlice<UInt8> { bytes[..<place] }

        private var digits: Range<Int> {
            let start = min(bytes.count, place + Self.sequenceName.count)
            let end = bytes[start...].firstIndex { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            return start..<(end ?? bytes.count)
        }

        /// 0: the value has no sequence.
        var sequence: Int64 { Int64(String(decoding: bytes[digits], as: UTF8.self)) ?? 0 }

        func replacing(sequence: Int64) -> Value {
            var bytes = bytes
            bytes.replaceSubrange(digits, with: "\(sequence)".utf8)
            return Value(bytes)
        }

        var withoutCause: [UInt8] {
            guard let end = Self.lastPlace(of: Self.causeName, in: bytes) else { return bytes }
            return bytes[..<end] + [UInt8(ascii: "}")]
        }

        /// The account of the subscription.
        var account: [UInt8]? {
            var json = JSONDocument()
            do throws(JSONFault) { try json.read(bytes.span) } catch { return nil }
            return json.text("appAccountToken", of: json.root)?.bytes
        }

        private static func lastPlace(of name: [UInt8], in bytes: [UInt8]) -> Int? {
            var place = bytes.count - name.count
            while place >= 0 {
                if bytes[place] == name[0], bytes[place..<(place + name.count)].elementsEqual(name) { return place }
                place -= 1
            }
            return nil
        }
    }
}
