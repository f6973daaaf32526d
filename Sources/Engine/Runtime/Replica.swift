// Identifies one of the processes of a worker.

/// A replica, as part of the names of its threads in Kafka.
public enum Replica: Sendable, Hashable, CustomStringConvertible {
    /// The same after a restart, and used by no other process: its threads keep their partitions, and a restart fences
    /// its predecessor.
    case slot(Int)
    /// Belongs to this process alone. Its threads are new members of the group at each start. A transaction that a
    /// killed one left open ends at its timeout, or is ended by a process that finds its lock file
    /// (`WorkerDirectory.leftovers`).
    case dynamic(String)

    /// A replica that no other process has.
    public static func makeDynamic() -> Replica {
        // Without sixteen random digits two processes could have the same name, and would fence each other.
        let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
        return .dynamic(dynamicPrefix + String(repeating: "0", count: 16 - digits.count) + digits)
    }

    /// A slot never begins like this.
    static let dynamicPrefix = "dynamic-"

    public var isDynamic: Bool { if case .dynamic = self { true } else { false } }

    public var description: String {
        switch self {
        case .slot(let number): "\(number)"
        case .dynamic(let name): name
        }
    }

    /// The prefix of its files in the state directory.
    var fileName: String {
        switch self {
        case .slot(let number): "slot-\(number)"
        case .dynamic(let name): name
        }
    }

    /// Transactional id of one thread, and its group instance id if it has one.
    public func identity(group: String, thread: Int) -> String { "\(group).\(self)-\(thread)" }
}
