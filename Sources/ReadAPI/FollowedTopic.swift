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

    /// Keys of a store: this byte, then the record's own key. Part of the format on disk.
    var space: UInt8 { UInt8(rawValue) + 1 }

    func storeKey(_ key: [UInt8]) -> [UInt8] { [space] + key }
}
