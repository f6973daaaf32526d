// What the read API follows, and where it keeps it.

internal import Contract

/// Partition p of all topics is kept in one store: what was read of them moves on together, and a store that is of no use is
/// built anew as a whole.
enum FollowedTopic: Int, CaseIterable {
    case entitlements, accounts, cells, consumption, events

    var id: TopicID {
        switch self {
        case .entitlements: .entitlements
        case .accounts: .accounts
        case .cells: .churnCells
        case .consumption: .consumption
        case .events: .entitlementEvents
        }
    }

    var type: RecordType {
        switch self {
        case .entitlements: .entitlement
        case .accounts: .account
        case .cells: .churnCell
        case .consumption: .consumption
        case .events: .entitlementEvent
        }
    }

    /// Who writes it.
    var worker: Worker {
        switch self {
        case .entitlements, .accounts, .events: .entitlements
        case .cells: .churn
        case .consumption: .consumption
        }
    }

    /// The last record of a key is all that counts. Of any other topic every record does.
    var isCompacted: Bool { TopicCatalogue.definition(id).retention == .lastOfKey }

    /// In one of which a record of the topic is, under its key.
    var spaces: [KeySpace] {
        switch self {
        case .entitlements: [.entitlements]
        case .accounts: [.granting, .others]
        case .cells: [.cells]
        // Under keys of their own: `RefundKeys`, `HistoryKeys`.
        case .consumption, .events: []
        }
    }
}

/// A part of a store. Part of the format on disk: the key of a record of `entitlements` or `churn-cells` follows its number; a
/// record of `accounts` stands under the number of both its parts, its account with the bar behind, the part's own number, and the rest of its key.
enum KeySpace: UInt8 {
    case entitlements = 1
    /// Records of `accounts` that give entitlements. Before the others of their account, so that of one that is too large for an
    /// answer everything that decides is still looked at, and all of it is one range.
    case granting
    case others
    case cells

    private static let accounts: UInt8 = 2
    private static let bar = UInt8(ascii: "|")

    var topic: FollowedTopic {
        switch self {
        case .entitlements: .entitlements
        case .granting, .others: .accounts
        case .cells: .cells
        }
    }

    /// - Parameter key: of a record, as `RecordJudge` lets it in.
    func key(_ key: [UInt8]) -> [UInt8] {
        guard topic == .accounts, let bar = key.firstIndex(of: Self.bar) else { return [rawValue] + key }
        return [Self.accounts] + key[...bar] + [rawValue] + key[(bar + 1)...]
    }

    /// What the keys of an account begin with; the next byte is the number of the part.
    static func prefix(ofAccount token: String) -> [UInt8] { [accounts] + Array(token.utf8) + [bar] }
}
