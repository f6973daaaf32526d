// The limit for stored refused bodies.

import Synchronization

/// A limit in bytes per hour, and a memory of what was stored in it. It counts by hours of the clock, so it needs no
/// list of times.
final class RejectedRoom: Sendable {
    enum Sender: CaseIterable {
        /// A sender who has no signing key.
        case anybody
        /// Signed by Apple; but every customer's device has texts that Apple has signed.
        case signed
        /// From 17.0.0.0/8.
        case apple

        /// The sender's share, in quarters of the limit. What anybody can send leaves room for signed bodies, and these
        /// for bodies from Apple.
        fileprivate var quarters: Int {
            switch self {
            case .anybody: 2
            case .signed: 3
            case .apple: 4
            }
        }
    }

    enum Place {
        /// There was room; it is reserved now.
        case taken
        /// The same bytes were stored in this hour already.
        case kept
        /// The same bytes are in flight.
        case underWay
        case none
    }

    private struct Hour {
        var number: Int64 = 0
        var usedBytes = 0
        /// By hash: whether Kafka has acknowledged the body.
        var bodies: [[UInt8]: Bool] = [:]
    }

    /// Most hashes that are remembered, a hundred bytes each. Bodies beyond this are stored while there is room,
    /// repeated or not.
    private static let limitBodies = 65_536

    private let limitBytes: Int
    private let hour = Mutex(Hour())

    init(bytesPerHour: Int) {
        limitBytes = bytesPerHour
    }

    /// Whether there is any room left; this costs less than a hash.
    func hasRoom(for sender: Sender, now: Int64) -> Bool {
        hour.withLock { hour in
            turn(&hour, now)
            return hour.usedBytes < limit(sender)
        }
    }

    /// - Parameter hash: the hash of everything that makes two records equal.
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

    /// Kafka has acknowledged the body: the same bytes need not be stored again.
    func remember(_ hash: [UInt8]) {
        hour.withLock { hour in
            if hour.bodies[hash] != nil { hour.bodies[hash] = true }
        }
    }

    /// The body is not sent: the same bytes may be tried again.
    func forget(_ hash: [UInt8]) {
        hour.withLock { $0.bodies[hash] = nil }
    }

    /// The body is no longer in flight.
    func forgetUnlessWritten(_ hash: [UInt8]) {
        hour.withLock { hour in
            if hour.bodies[hash] == false { hour.bodies[hash] = nil }
        }
    }

    /// Gives back room that was taken at `time` and not used. For an hour that has ended there is nothing to give back.
    func giveBack(_ bytes: Int, takenAt time: Int64) {
        hour.withLock { hour in
            if hour.number == Self.number(of: time) { hour.usedBytes -= bytes }
        }
    }

    /// Computed so that the largest setting does not overflow.
    private func limit(_ sender: Sender) -> Int {
        limitBytes / 4 * sender.quarters + limitBytes % 4 * sender.quarters / 4
    }

    private static func number(of time: Int64) -> Int64 { time / 3_600_000 }

    private func turn(_ hour: inout Hour, _ now: Int64) {
        let number = Self.number(of: now)
        if hour.number != number { hour = Hour(number: number) }
    }
}
