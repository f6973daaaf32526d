// The disturbances of a long run with many processes, and their order.

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
}

enum ManyKind: String, CaseIterable, Sendable {
    case entitlements, churn
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

/// Everything once in each round, in another order in each.
struct ManyPlan {
    static let slots = 3

    private var dice: Dice
    private var waiting: [ManyCause] = []
    private let partitions: Int32
    private let causes: [[ManyCause]]

    /// - Parameter fillsDisks: whether this user may mount a disk that can be filled.
    init(partitions: Int32, fillsDisks: Bool) {
        dice = Dice()
        self.partitions = partitions
        // After a join comes a leave, so that there are three again.
        causes =
            [
                [.kill], [.rolling], [.freeze], [.join, .leave], [.wiped], [.old], [.foreign], [.brokerDies],
                [.brokerFreezes], [.deleted],
            ] + (fillsDisks ? [[.full]] : [])
    }

    mutating func next() -> ManyStep {
        if waiting.isEmpty { waiting = causes.shuffled(using: &dice).flatMap(\.self) }
        let cause = waiting.removeFirst()
        let kind = ManyKind.allCases.randomElement(using: &dice)!
        let slot = Int.random(in: 0..<Self.slots, using: &dice)
        return ManyStep(
            cause: cause, victim: ManyPlace(kind: kind, slot: cause == .full ? ManyCrew.smallSlot : slot),
            broker: Int.random(in: 0..<3, using: &dice), seconds: Int.random(in: 4...8, using: &dice),
            partition: Int32.random(in: 0..<partitions, using: &dice))
    }
}
