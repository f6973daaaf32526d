// The topics that the read API follows, and where it stores them.

internal import Contract
internal import Records

/// Partition p of all topics is kept in one store: their positions move together, and a store that cannot be used is
/// rebuilt as a whole.
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

    /// The worker that writes the topic.
    var worker: WorkerName {
        switch self {
        case .entitlements, .accounts, .events: .entitlements
        case .cells: .churn
        case .consumption: .consumption
        }
    }

    /// true: only the last record of a key counts. In any other topic every record counts.
    var isCompacted: Bool { TopicCatalogue.definition(id).retention == .lastOfKey }

    /// The spaces that may contain a record of the topic, under its key.
    var spaces: [KeySpace] {
        switch self {
        case .entitlements: [.entitlements]
        case .accounts: [.granting, .others]
        case .cells: [.cells]
        // These have their own keys: `RefundKeys`, `HistoryKeys`.
        case .consumption, .events: []
        }
    }
}

/// A part of a store. Part of the format on disk. The key of a record of `entitlements` or `churn-cells` follows the
/// number of its space. The key of a record of `accounts` has the number of `accounts`, its account with the bar, the
/// number of its own space, and the rest of its key.
enum KeySpace: UInt8 {
    case entitlements = 1
    /// Records of `accounts` that give entitlements. They come before the other records of their account: so everything
    /// that decides is read first even if the account is too large for an answer, and the whole account is one range.
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

    /// - Parameter key: of a record that `RecordJudge` has accepted.
    func key(_ key: [UInt8]) -> [UInt8] {
        guard topic == .accounts, let bar = key.firstIndex(of: Self.bar) else { return [rawValue] + key }
        return [Self.accounts] + key[...bar] + [rawValue] + key[(bar + 1)...]
    }

    /// The prefix of all keys of an account; the next byte is the number of the space.
    static func prefix(ofAccount token: String) -> [UInt8] { [accounts] + Array(token.utf8) + [bar] }
}
