// Headers whose chain was checked already.

import Crypto

/// A header with a chain that leads to a pinned root and has Apple's markers. Dates are not judged here: every payload has
/// its own.
final class CheckedHeader {
    /// As it stands in the signed text.
    let text: [UInt8]
    let chain: TrustedChain
    let key: P256PublicKey
    /// To which leaf and intermediate lead. Several have one name and one key, and may differ in their dates.
    private let roots: [Certificate]
    let leafSerial: String
    /// Of the text: what is hashed once need not be hashed for every payload.
    let hash: SHA256.Prefix
    let checkedAt: Int64

    /// - Parameter roots: all that the chain leads to, that of `chain` among them.
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

/// Keyed by the exact bytes of the header, so that no reading of a header can stand for another one.
///
/// Only headers of payloads whose signature held come in here: whoever holds no key of Apple's cannot push out the ones that
/// count.
struct ChainCache {
    /// Apple signs with one leaf at a time, and rotates once a year or so.
    static let limitEntries = 32
    /// As Apple's own libraries: so long may a chain be relied on that OpenSSL, with what it learns later, would refuse.
    static let lifetime: Int64 = 15 * 60 * 1000

    /// The one used last comes first.
    private var entries: [CheckedHeader] = []

    var count: Int { entries.count }

    /// The entry for the header that the text begins with.
    mutating func entry(for text: Span<UInt8>, now: Int64) -> CheckedHeader? {
        for index in entries.indices {
            let entry = entries[index]
            let known = entry.text
            guard text.count > known.count, text[known.count] == UInt8(ascii: "."),
                areEqual(text.extracting(0..<known.count), known.span)
            else { continue }
            // A clock that was set back makes an entry old, too.
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
