// The disturbances of a long run with many processes, and their order.

import KafkaTestKit

/// Why partitions may stand still.
enum ManyCause: String, CaseIterable, Sendable {
    /// Everything is new, and no group has a coordinator yet.
    case start
    /// No disturbance: pauses that come from ordinary work on a machine this busy.
    case nothing
    case kill
    case rolling = "rolling restart"
    case freeze
    case join
    case leave
    case wiped = "wiped disk"
    case old = "old disk"
    case foreign = "foreign disk"
    case full = "disk full"
    case brokerDies = "broker dies"
    case brokerFreezes = "broker freezes"
    case deleted = "records deleted"
    case cut = "worker cut off"
    /// Nothing reaches its host, but what it sends arrives.
    case deaf = "worker hears nothing"
    /// The other way round.
    case mute = "worker is not heard"
    case slow = "slow network"
    case brokerCut = "broker cut off"
    case brokerMute = "broker is not heard"
    case brokerFull = "disk of a broker full"
}

enum ManyKind: String, CaseIterable, Sendable {
    case entitlements, churn, consumption
}

/// One process.
struct ManyPlace: Hashable, Sendable, CustomStringConvertible {
    let kind: ManyKind
    let slot: Int

    var description: String { "\(kind.rawValue) \(slot)" }
}

struct ManyStep: Sendable {
    let cause: ManyCause
    let victim: ManyPlace
    /// One of three.
    let broker: Int
    /// For disturbances that freeze something for a time.
    let seconds: Int
    let partition: Int32
}

/// Which processes an installation has, of which build, and where they run.
struct ManyShape: Sendable {
    /// The first word of what the test prints.
    var name = "many"
    var kinds: [ManyKind] = [.entitlements, .churn]
    /// Processes of each kind.
    var slots = 3
    /// Of each process.
    var threads = 2
    /// The path of another build than the one beside the tests.
    var program: String?
    /// A process that is not here runs where the test runs.
    var hosts: [ManyPlace: TestHost] = [:]
    /// Further settings of a kind.
    var settings: [ManyKind: [String]] = [:]
    /// Room for all partitions of a worker, and for the 32 MiB that opening a store needs.
    var smallDiskMegabytes = 192

    var places: [ManyPlace] { kinds.flatMap { kind in (0..<slots).map { ManyPlace(kind: kind, slot: $0) } } }
}

/// Everything once in each round, in another order in each.
struct ManyPlan {
    private var dice: Dice
    private var waiting: [ManyCause] = []
    private let partitions: Int32
    private let places: [ManyPlace]
    private let causes: [[ManyCause]]

    /// - Parameter fillsDisks: whether this user may mount a disk that can be filled.
    init(_ shape: ManyShape, partitions: Int32, fillsDisks: Bool) {
        self.init(
            shape, partitions: partitions,
            // After a join comes a leave, so that there are three again.
            [
                [.kill], [.rolling], [.freeze], [.join, .leave], [.wiped], [.old], [.foreign], [.brokerDies],
                [.brokerFreezes], [.deleted],
            ] + (fillsDisks ? [[.full]] : []))
    }

    /// - Parameter first: causes that come before all others in the first round.
    init(_ shape: ManyShape, partitions: Int32, _ causes: [[ManyCause]], first: [ManyCause] = []) {
        dice = Dice()
        self.partitions = partitions
        places = shape.places
        self.causes = causes
        guard !first.isEmpty else { return }
        let others = causes.filter { Set($0).isDisjoint(with: first) }
        waiting = first.shuffled(using: &dice) + others.shuffled(using: &dice).flatMap(\.self)
    }

    mutating func next() -> ManyStep {
        if waiting.isEmpty { waiting = causes.shuffled(using: &dice).flatMap(\.self) }
        let cause = waiting.removeFirst()
        let victims = cause == .full ? places.filter { $0.slot == ManyCrew.smallSlot } : places
        return ManyStep(
            cause: cause, victim: victims.randomElement(using: &dice)!,
            broker: Int.random(in: 0..<3, using: &dice), seconds: Int.random(in: 4...8, using: &dice),
            partition: Int32.random(in: 0..<partitions, using: &dice))
    }
}
