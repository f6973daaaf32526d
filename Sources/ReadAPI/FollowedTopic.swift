// What the read API follows, and where it keeps it.

internal import Contract

/// Partition p of both topics is kept in one store: what was read of the two moves on together, and a store that is of no use is
/// built anew as a whole.
enum FollowedTopic: Int, CaseIterable {
    case entitlements, accounts

    var id: TopicID {
        switch self {
        case .entitlements: .entitlements
        case .accounts: .accounts
        }
    }

    var type: RecordType {
        switch self {
        case .entitlements: .entitlement
        case .accounts: .account
        }
    }

    /// In one of which a record of the topic is.
    var spaces: [KeySpace] {
        switch self {
        case .entitlements: [.entitlements]
        case .accounts: [.granting, .others]
        }
    }
}

/// A part of a store: its keys are this byte, then the record's own key. Part of the format on disk.
enum KeySpace: UInt8 {
    case entitlements = 1
    /// Records of `accounts` that give entitlements. Apart from the others, so that of an account that is too large for one answer
    /// everything that decides is still looked at.
    case granting
    case others

    var topic: FollowedTopic {
        switch self {
        case .entitlements: .entitlements
        case .granting, .others: .accounts
        }
    }

    func key(_ key: [UInt8]) -> [UInt8] { [rawValue] + key }
}
