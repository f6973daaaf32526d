// Chains that have been judged already, in whatever header they came.

import Crypto

/// A chain that is trusted, apart from its dates.
struct TrustedPath {
    let chain: TrustedChain
    /// All roots that leaf and intermediate lead to, including that of `chain`.
    let roots: [Certificate]
    let key: P256PublicKey
}

/// The texts are base64 in canonical form: equal texts are equal certificates.
struct ChainVerdict {
    /// Leaf, intermediate, and the third certificate that was sent.
    let texts: [[UInt8]]
    let result: Result<TrustedPath, Rejection>
    let judgedAt: Int64
}

/// Judging a chain costs ten times as much as the rest of a payload, and anybody can send one without a key.
///
/// Trusted chains and others are kept separately. Only Apple can make trusted chains. Anybody can make any number of
/// others, which then displace only each other.
struct ChainVerdicts {
    static let limitEach = 32

    private var trusted: [ChainVerdict] = []
    private var refused: [ChainVerdict] = []
    private var intermediates = Intermediates()

    /// Whether a root has signed the intermediates that were checked recently.
    private struct Intermediates {
        struct Verdict {
            let text: [UInt8]
            let isVouchedFor: Bool
            let judgedAt: Int64
        }

        /// The intermediate judged last comes first.
        var vouchedFor: [Verdict] = []
        var others: [Verdict] = []
    }

    var counts: (trusted: Int, refused: Int) { (trusted.count, refused.count) }

    /// Anybody can invent any number of leaves below one intermediate, so the intermediate is checked once.
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

    /// Looks up leaf and intermediate; the third certificate does not matter. A verdict is valid as long as a cached
    /// header.
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

    /// The verdict used last comes first.
    private static func find(_ texts: [[UInt8]], in list: inout [ChainVerdict], now: Int64) -> ChainVerdict? {
        let place = list.firstIndex { known in
            known.texts[0] == texts[0] && known.texts[1] == texts[1]
        }
        guard let place else { return nil }
        let found = list.remove(at: place)
        // If the clock was set back, the verdict counts as too old.
        guard found.judgedAt <= now, now - found.judgedAt < ChainCache.lifetime else { return nil }
        list.insert(found, at: 0)
        return found
    }

    private static func keep(_ verdict: ChainVerdict, in list: inout [ChainVerdict]) {
        if list.count == limitEach { list.removeLast() }
        list.insert(verdict, at: 0)
    }
}
