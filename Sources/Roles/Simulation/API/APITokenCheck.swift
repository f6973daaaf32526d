// Checks the tokens of calls to the simulated App Store Server API against everything that Apple requires.

internal import Crypto
internal import JSON

/// Checks the `Authorization` header of a request.
struct APITokenCheck: Sendable {
    /// Why a token is rejected. Apple answers all of them with 401 and without a reason.
    struct Refusal: Error {
        let words: String
        init(_ words: String) { self.words = words }
    }

    private static let audience = "appstoreconnect-v1"
    /// The maximum time from `iat` to `exp`, in seconds.
    private static let longestLife: Int64 = 3600
    /// How far a caller's clock may be ahead, in seconds.
    private static let leeway: Int64 = 60
    /// A token has about 400 bytes.
    private static let maxBytes = 8 << 10

    let key: SimulatedAPIKey
    let bundleIds: [String]

    /// - Parameter now: milliseconds since 1970.
    /// - Returns: the bundle id in the token.
    func bundleId(of request: APIRequest, now: Int64) throws(Refusal) -> String {
        let given = request.values(of: "Authorization")
        guard given.count == 1 else { throw Refusal("there is not exactly one Authorization header") }
        let parts = given[0].split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else {
            throw Refusal("the Authorization header contains no bearer token")
        }
        let token = Array(parts[1].utf8)
        guard token.count <= Self.maxBytes else { throw Refusal("the token is too long") }
        let sections = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Array.init)
        guard sections.count == 3 else { throw Refusal("the token does not have three parts") }
        try check(header: try object(sections[0]))
        try check(signature: sections[2], of: sections[0] + [UInt8(ascii: ".")] + sections[1])
        return try check(claims: try object(sections[1]), now: now / 1000)
    }

    private func object(_ section: [UInt8]) throws(Refusal) -> JSONObject {
        guard let bytes = Base64.decodeURL(section.span) else { throw Refusal("a part of the token is not base64url") }
        do throws(JSONFault) {
            if let object = try JSONValue.read(bytes).object { return object }
        } catch {
            throw Refusal("a part of the token is not JSON")
        }
        throw Refusal("a part of the token is not an object")
    }

    private func check(header: JSONObject) throws(Refusal) {
        guard header["alg"]?.string == "ES256" else { throw Refusal("alg is not ES256") }
        guard header["typ"]?.string == "JWT" else { throw Refusal("typ is not JWT") }
        guard header["kid"]?.string == key.keyId else { throw Refusal("kid is not the id of the key") }
        guard header["crit"] == nil else { throw Refusal("crit is not supported") }
    }

    private func check(signature: [UInt8], of text: [UInt8]) throws(Refusal) {
        guard let bytes = Base64.decodeURL(signature.span) else { throw Refusal("the signature is not base64url") }
        let digest = SHA256.digest(text.span)
        guard let publicKey = key.key.p256PublicKey, publicKey.verify(bytes.span, digest: digest.span) else {
            throw Refusal("the signature was not made with the key")
        }
    }

    private func check(claims: JSONObject, now: Int64) throws(Refusal) -> String {
        guard claims["iss"]?.string == key.issuerId else { throw Refusal("iss is not the issuer id") }
        guard claims["aud"]?.string == Self.audience else { throw Refusal("aud is not \(Self.audience)") }
        guard let end = claims["exp"]?.integer else { throw Refusal("exp is missing or not a whole number") }
        guard now < end else { throw Refusal("the token has expired") }
        // Apple's own libraries for Java and Python leave out iat.
        if let issued = claims["iat"] {
            guard let issued = issued.integer else { throw Refusal("iat is not a whole number") }
            guard issued <= now + Self.leeway else { throw Refusal("iat is in the future") }
            let life = end.subtractingReportingOverflow(issued)
            guard end > issued, !life.overflow, life.partialValue <= Self.longestLife else {
                throw Refusal("exp is more than 60 minutes after iat")
            }
        }
        // `end` is later than now, and now is later than 1970: the subtraction cannot overflow.
        guard end - now <= Self.longestLife + Self.leeway else { throw Refusal("exp is over 60 minutes in the future") }
        guard let bundleId = claims["bid"]?.string, bundleIds.contains(bundleId) else {
            throw Refusal("bid is not the bundle id of an app of the account")
        }
        return bundleId
    }
}
