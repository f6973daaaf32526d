// Apple's words that affect an answer.

internal import Notices
internal import Records

extension Text {
    static let autoRenewable = Text(AppleWord.autoRenewable)
    static let oneTimeTypes = [
        Text(AppleWord.nonConsumable), Text(AppleWord.consumable), Text(AppleWord.nonRenewing),
    ]

    static let familyShared = Text(AppleWord.familyShared)
    static let assigned = Text(AppleWord.assigned)
    static let familyRevoke = Text(AppleWord.familyRevoke)
    static let assignmentRevoke = Text(AppleWord.assignmentRevoke)

    static let monthly = Text(AppleWord.monthly)
    static let billedUpfront = Text(AppleWord.billedUpfront)

    static let expired = Text(AppleWord.expired)
}

extension Entitlement.Reason {
    init(_ reason: EndReason) {
        switch reason {
        case .voluntary: self = .voluntary
        case .billing: self = .billing
        case .price: self = .price
        case .unavailable: self = .unavailable
        case .other: self = .other
        }
    }
}
