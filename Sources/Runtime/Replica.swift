// Which of the processes of a worker one is.

/// A replica, as part of the names of its threads in Kafka.
public enum Replica: Sendable, Hashable, CustomStringConvertible {
    /// The same after a restart, and nobody else's: its threads keep their places in the group, and take over from themselves.
    case slot(Int)
    /// Of this process alone. Its threads are new to the group at each start, and what one that was killed has left open ends by
    /// time, or by whoever finds its lock file (`WorkerDirectory.leftovers`).
    case dynamic(String)

    /// One that no other process has.
    public static func makeDynamic() -> Replica {
        // Without sixteen random digits two processes could meet, and would fence each other.
        let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
        return .dynamic(dynamicPrefix + String(repeating: "0", count: 16 - digits.count) + digits)
    }

    /// Never the beginning of a slot.
    static let dynamicPrefix = "dynamic-"

    public var isDynamic: Bool { if case .dynamic = self { true } else { false } }

    public var description: String {
        switch self {
        case .slot(let number): "\(number)"
        case .dynamic(let name): name
        }
    }

    /// How its files in the state directory begin.
    var fileName: String {
        switch self {
        case .slot(let number): "slot-\(number)"
        case .dynamic(let name): name
        }
    }

    /// Transactional id of one thread, and group instance id where there is one.
    public func identity(group: String, thread: Int) -> String { "\(group).\(self)-\(thread)" }
}
