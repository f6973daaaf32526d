// Headers whose chain has been checked already.

import Crypto

/// A header whose chain ends at a pinned root and has Apple's markers. Dates are not checked here: every payload has
/// its own.
final class CheckedHeader {
    /// The header as it is in the signed text.
    let text: [UInt8]
    let chain: TrustedChain
    let key: P256PublicKey
    /// The roots that leaf and intermediate lead to. Several can have the same name and key but different dates.
    private let roots: [Certificate]
    let leafSerial: String
    /// Hash of the header text, kept so that it is not hashed again for every payload.
    let hash: SHA256.Prefix
    let checkedAt: Int64

    /// - Parameter roots: all roots that the chain leads to, including that of `chain`.
    init(text: [UInt8], chain: TrustedChain, roots: [Certificate], key: P256PublicKey, checkedAt: Int64) {
        self.text = text
        self.chain = chain
        self.roots = roots
        self.key = key
        self.checkedAt = checkedAt
        hash = SHA256.Prefix(text.span)
        leafSerial = chain.leaf.serial
    }

    func isValid(at date: Int64) -> Bool {
        chain.leaf.isValid(at: date) && chain.intermediate.isValid(at: date) && roots.contains { $0.isValid(at: date) }
    }
}

/// Keyed by the exact bytes of the header, so that one header cannot be mistaken for another.
///
/// Only headers of payloads with a valid signature are cached: a sender without a key of Apple's cannot displace them.
struct ChainCache {
    /// Apple signs with one leaf at a time, and rotates once a year or so.
    static let limitEntries = 32
    /// Apple's own libraries use the same time. Until then a chain stays accepted even if OpenSSL would refuse it by now.
    static let lifetime: Int64 = 15 * 60 * 1000

    /// The entry used last comes first.
    private var entries: [CheckedHeader] = []

    var count: Int { entries.count }

    /// The entry for the header at the start of the text.
    mutating func entry(for text: Span<UInt8>, now: Int64) -> CheckedHeader? {
        for index in entries.indices {
            let entry = entries[index]
            let known = entry.text
            guard text.count > known.count, text[known.count] == UInt8(ascii: "."),
                areEqual(text.extracting(0..<known.count), known.span)
            else { continue }
            // If the clock was set back, the entry counts as too old.
            guard entry.checkedAt <= now, now - entry.checkedAt < Self.lifetime else {
                entries.remove(at: index)
                return nil
            }
            if index > 0 { entries.insert(entries.remove(at: index), at: 0) }
            return entry
        }
        return nil
    }

    mutating func keep(_ entry: CheckedHeader) {
        if entries.count == Self.limitEntries { entries.removeLast() }
        entries.insert(entry, at: 0)
    }
}
