// Chains that were judged already, whatever header they came in.

import Crypto

/// A chain that can be relied on, dates apart.
struct TrustedPath {
    let chain: TrustedChain
    /// All that leaf and intermediate lead to, that of `chain` among them.
    let roots: [Certificate]
    let key: P256PublicKey
}

/// Base64 in its one canonical form: equal texts are equal certificates.
struct ChainVerdict {
    /// Leaf, intermediate, and what was sent as the third.
    let texts: [[UInt8]]
    let result: Result<TrustedPath, Rejection>
    let judgedAt: Int64
}

/// To judge a chain costs ten times what the rest of a payload does, and nobody needs a key to send one.
///
/// Trusted chains and others are kept apart: only Apple can make the ones, anybody any number of the others, which so push
/// out nothing but each other.
struct ChainVerdicts {
    static let limitEach = 32

    private var trusted: [ChainVerdict] = []
    private var refused: [ChainVerdict] = []
    private var intermediates = Intermediates()

    /// Whether a root has signed the intermediates of late.
    private struct Intermediates {
        struct Verdict {
            let text: [UInt8]
            let isVouchedFor: Bool
            let judgedAt: Int64
        }

        /// The one judged last comes first.
        var vouchedFor: [Verdict] = []
        var others: [Verdict] = []
    }

    var counts: (trusted: Int, refused: Int) { (trusted.count, refused.count) }

    /// Leaves may be made up without end below one intermediate: whether a root vouches for it is asked once.
    mutating func isVouchedFor(_ text: [UInt8], now: Int64, judge: () -> Bool) -> Bool {
        let all = intermediates.vouchedFor + intermediates.others
        if let known = all.first(where: { $0.text == text }), known.judgedAt <= now,
            now - known.judgedAt < ChainCache.lifetime
        {
            return known.isVouchedFor
        }
        let verdict = Intermediates.Verdict(text: text, isVouchedFor: judge(), judgedAt: now)
        func keep(in list: inout [Intermediates.Verdict]) {
            list = [verdict] + list.filter { $0.text != text }.prefix(Self.limitEach - 1)
        }
        if verdict.isVouchedFor { keep(in: &intermediates.vouchedFor) } else { keep(in: &intermediates.others) }
        return verdict.isVouchedFor
    }

    /// By leaf and intermediate; the third certificate decides nothing. For as long as a header may be relied on.
    mutating func verdict(on texts: [[UInt8]], now: Int64) -> ChainVerdict? {
        Self.find(texts, in: &trusted, now: now) ?? Self.find(texts, in: &refused, now: now)
    }

    mutating func keep(_ verdict: ChainVerdict) {
        if case .success = verdict.result {
            Self.keep(verdict, in: &trusted)
        } else {
            Self.keep(verdict, in: &refused)
        }
    }

    /// The one used last comes first.
    private static func find(_ texts: [[UInt8]], in list: inout [ChainVerdict], now: Int64) -> ChainVerdict? {
        let place = list.firstIndex { known in
            known.texts[0] == texts[0] && known.texts[1] == texts[1]
        }
        guard let place else { return nil }
        let found = list.remove(at: place)
        // A clock that was set back makes a verdict old, too.
        guard found.judgedAt <= now, now - found.judgedAt < ChainCache.lifetime else { return nil }
        list.insert(found, at: 0)
        return found
    }

    private static func keep(_ verdict: ChainVerdict, in list: inout [ChainVerdict]) {
        if list.count == limitEach { list.removeLast() }
        list.insert(verdict, at: 0)
    }
}
