// The tokens of requests: one for each app, kept while it is valid.

internal import Contract
internal import Crypto
internal import JSON
import Synchronization

final class Tokens: Sendable {
    /// Apple refuses a token that was issued in the future. The clock of this host may be ahead by this much.
    static let clockAllowanceSeconds: Int64 = 60
    /// From `iat` to `exp`. Apple accepts 60 minutes at most; half of that leaves room for a wrong clock.
    static let lifeSeconds: Int64 = 30 * 60
    /// A token that expires sooner is not used: its request may have to wait, and the clock of this host may be behind.
    static let leastLeftSeconds: Int64 = 10 * 60
    /// Most apps whose tokens are kept. More apps are a mistake, which must not fill the memory.
    static let maxKept = 1_000

    private static let audience = "appstoreconnect-v1"

    private struct Token {
        let text: String
        let issuedAt: Int64
        let endsAt: Int64

        /// If the clock was set back, a token may have been issued in the future.
        func isGood(at seconds: Int64) -> Bool {
            issuedAt <= seconds && seconds < endsAt - Tokens.leastLeftSeconds
        }
    }

    private let key: APIKey
    /// Keyed by the bytes of the bundle id.
    private let kept = Mutex<[[UInt8]: Token]>([:])

    init(_ key: APIKey) { self.key = key }

    /// - Parameter now: milliseconds since 1970.
    func token(of bundleId: String, now: Int64) -> String {
        let seconds = now.floorDivided(by: 1000)
        let app = Array(bundleId.utf8)
        return kept.withLock { kept in
            if let token = kept[app], token.isGood(at: seconds) { return token.text }
            let token = makeToken(of: bundleId, at: seconds)
            if kept.count >= Self.maxKept { kept.removeAll() }
            kept[app] = token
            return token.text
        }
    }

    /// The next request makes a new token.
    func forget(_ bundleId: String) {
        kept.withLock { $0[Array(bundleId.utf8)] = nil }
    }

    private func makeToken(of bundleId: String, at seconds: Int64) -> Token {
        let issuedAt = seconds - Self.clockAllowanceSeconds
        let endsAt = issuedAt + Self.lifeSeconds
        var header = JSONWriter()
        header.object { json in
            json.member("alg", "ES256")
            json.member("kid", key.keyId)
            json.member("typ", "JWT")
        }
        var claims = JSONWriter()
        claims.object { json in
            json.member("iss", key.issuerId)
            json.member("iat", issuedAt)
            json.member("exp", endsAt)
            json.member("aud", Self.audience)
            json.member("bid", bundleId)
        }
        let (head, content) = (header.bytes, claims.bytes)
        var text = Base64.encodeURL(head.span)
        text.append(UInt8(ascii: "."))
        text += Base64.encodeURL(content.span)
        let digest = SHA256.digest(text.span)
        let signature = key.signingKey.sign(digest: digest.span)
        text.append(UInt8(ascii: "."))
        text += Base64.encodeURL(signature.span)
        return Token(text: String(decoding: text, as: UTF8.self), issuedAt: issuedAt, endsAt: endsAt)
    }
}
