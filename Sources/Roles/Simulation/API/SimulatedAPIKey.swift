// The key that signs calls to the simulated App Store, as App Store Connect would issue it.

public import Crypto

/// An In-App Purchase key with its two ids. One seed always gives the same key.
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

    /// The content of the `.p8` file.
    public var pem: [UInt8] { key.pem }
}
