// The key that signs the calls to Apple.

internal import Crypto

/// The values that App Store Connect gives for the App Store Server API. No description and no mirror shows the key.
public struct APIKey: Sendable, CustomStringConvertible, CustomReflectable {
    let issuerId: String
    let keyId: String
    let signingKey: SigningKey

    /// - Parameter pem: the contents of the `.p8` file.
    public init(issuerId: String, keyId: String, pem: [UInt8]) throws(APIKeyFault) {
        guard isWord(issuerId) else {
            throw APIKeyFault("the issuer id is empty or has blanks: App Store Connect shows it above the list of keys")
        }
        guard isWord(keyId) else {
            throw APIKeyFault("the key id is empty or has blanks: App Store Connect shows it beside the key")
        }
        do throws(CertificateFault) {
            signingKey = try SigningKey(pem: pem)
        } catch {
            throw APIKeyFault("the key cannot be read: \(error)")
        }
        guard signingKey.curve == .p256 else {
            throw APIKeyFault(
                "the key is not on P-256, as keys of the App Store Server API are: download an In-App Purchase key (.p8)"
            )
        }
        self.issuerId = issuerId
        self.keyId = keyId
    }

    public var description: String { "a key of the App Store Server API" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

public struct APIKeyFault: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}

/// The characters of an id: visible ASCII.
private func isWord(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
}
