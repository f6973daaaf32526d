// Why a subscription ended, from Apple's numbers and words.

public enum EndReason: Sendable, Equatable {
    case voluntary, billing, price, unavailable
    /// Apple gives another reason, or none of these.
    case other

    /// - Parameter intent: the member `expirationIntent` of a renewal info.
    public init(expirationIntent intent: Int64) {
        switch intent {
        case 1: self = .voluntary
        case 2: self = .billing
        case 3: self = .price
        case 4: self = .unavailable
        default: self = .other
        }
    }

    private static let subtypes: [(word: StaticString, reason: EndReason)] = [
        (AppleWord.voluntary, .voluntary), (AppleWord.billingRetry, .billing), (AppleWord.priceIncrease, .price),
        (AppleWord.productNotForSale, .unavailable),
    ]

    /// - Parameter subtype: of a notification `EXPIRED`.
    /// - Returns: nil if the subtype gives no reason.
    public init?(expiredSubtype subtype: UnsafeBufferPointer<UInt8>) {
        for (word, reason) in Self.subtypes
        where word.withUTF8Buffer({ $0.count == subtype.count && $0.elementsEqual(subtype) }) {
            self = reason
            return
        }
        return nil
    }
}
