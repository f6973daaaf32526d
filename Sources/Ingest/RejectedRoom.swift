// How much of what was refused is kept.

import Synchronization

/// A bound on bytes per hour, and a memory of what was kept in it. Hours are those of the clock: no list of what came when.
final class RejectedRoom: Sendable {
    enum Sender: CaseIterable {
        /// Whoever holds no key of anybody's.
        case anybody
        /// Signed by Apple; but every customer's device holds texts that are.
        case signed
        /// From 17.0.0.0/8.
        case apple

        /// Of four quarters. What anybody can send leaves room for what is signed, and that for what comes from Apple.
        fileprivate var quarters: Int {
            switch self {
            case .anybody: 2
            case .signed: 3
            case .apple: 4
            }
        }
    }

    enum Place {
        /// It was free and is taken now.
        case taken
        /// The same bytes were kept in this hour already.
        case kept
        /// The same bytes are on their way.
        case underWay
        case none
    }

    private struct Hour {
        var number: Int64 = 0
        var usedBytes = 0
        /// By hash: whether Kafka has acknowledged them.
        var bodies: [[UInt8]: Bool] = [:]
    }

    /// A hundred bytes each. What comes beyond it is kept as long as there is room, repeated or not.
    private static let limitBodies = 65_536

    private let limitBytes: Int
    private let hour = Mutex(Hour())

    init(bytesPerHour: Int) {
        limitBytes = bytesPerHour
    }

    /// Whether there is any room left, which costs less to ask than a hash.
    func hasRoom(for sender: Sender, now: Int64) -> Bool {
        hour.withLock { hour in
            turn(&hour, now)
            return hour.usedBytes < limit(sender)
        }
    }

    /// - Parameter hash: of all that makes it the same record.
    func take(_ bytes: Int, hash: [UInt8], for sender: Sender, now: Int64) -> Place {
        hour.withLock { hour in
            turn(&hour, now)
            if let isWritten = hour.bodies[hash] { return isWritten ? .kept : .underWay }
            guard bytes <= limit(sender) - hour.usedBytes else { return .none }
            hour.usedBytes += bytes
            if hour.bodies.count < Self.limitBodies { hour.bodies[hash] = false }
            return .taken
        }
    }

    /// Kafka has it: the same bytes need not be kept again.
    func remember(_ hash: [UInt8]) {
        hour.withLock { hour in
            if hour.bodies[hash] != nil { hour.bodies[hash] = true }
        }
    }

    /// It is not sent: the same bytes may be tried again.
    func forget(_ hash: [UInt8]) {
        hour.withLock { $0.bodies[hash] = nil }
    }

    /// It is on its way no more.
    func forgetUnlessWritten(_ hash: [UInt8]) {
        hour.withLock { hour in
            if hour.bodies[hash] == false { hour.bodies[hash] = nil }
        }
    }

    /// What was taken at `time` and then not written. Of an hour that is over nothing is left to give back.
    func giveBack(_ bytes: Int, takenAt time: Int64) {
        hour.withLock { hour in
            if hour.number == Self.number(of: time) { hour.usedBytes -= bytes }
        }
    }

    /// Without overflow for the greatest setting.
    private func limit(_ sender: Sender) -> Int {
        limitBytes / 4 * sender.quarters + limitBytes % 4 * sender.quarters / 4
    }

    private static func number(of time: Int64) -> Int64 { time / 3_600_000 }

    private func turn(_ hour: inout Hour, _ now: Int64) {
        let number = Self.number(of: now)
        if hour.number != number { hour = Hour(number: number) }
    }
}
