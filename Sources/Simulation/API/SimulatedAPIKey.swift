// The key with which calls to the make-believe App Store are signed, as App Store Connect would hand it out.

public import Crypto

/// An In-App Purchase key and its two names. One seed gives one key.
public struct SimulatedAPIKey: Sendable {
    /// A UUID.
    public let issuerId: String
    /// Ten letters and digits.
    public let keyId: String
    public let key: SigningKey

    public init(seed: UInt64) {
        var random = Randomness(seed, 6)
        issuerId = random.uuid().description
        let alphabet = Array("ABCDEFGHJKLMNPQRSTUVWXYZ23456789".utf8)
        keyId = String(decoding: (0..<10).map { _ in random.choice(of: alphabet) }, as: UTF8.self)
        key = SigningKey(.p256, seed: (0..<48).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    }

    /// What the `.p8` file holds.
    public var pem: [UInt8] { key.pem }
}
