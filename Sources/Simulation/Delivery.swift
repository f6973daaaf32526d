// How notifications are sent: some twice, some late, some after others, some that nobody signed.

public import Contract

/// When Apple tries again.
public enum RetrySchedule {
    private static let hours: [Int64] = [1, 12, 24, 48, 72]

    /// Milliseconds to wait after each attempt that failed, until Apple gives up. In sandbox there is one attempt only.
    public static func delays(in environment: Contract.Environment) -> [Int64] {
        switch environment {
        case .production: hours.map { $0 * hour }
        case .sandbox: []
        }
    }
}

/// One request to the receiver.
public struct Post: Sendable {
    /// When it is sent, in the simulation's time.
    public let at: Int64
    public let notification: SimulatedNotification
    /// nil: genuine.
    public let forgery: Forgery?
    /// A second delivery of what was sent before, though nothing had failed.
    public let isDuplicate: Bool
    let place: Int

    /// What goes into `signedPayload`.
    public func signedPayload(by authority: SimulatedAuthority, forger: Forger) -> [UInt8] {
        if let forgery { forger.forge(forgery, of: notification) } else { notification.signedPayload(by: authority) }
    }
}

/// Turns notifications into posts in order of time, disturbed at chosen rates; the same seed disturbs the same way.
///
/// Memory grows with the posts that are delayed.
public struct Delivery: Sequence, IteratorProtocol {
    public struct Configuration: Sendable {
        public var seed: UInt64
        /// Of a thousand notifications: sent again within `longestDelay` though the first was fine.
        public var duplicatesPerMille = 0
        /// Sent up to `longestDelay` late, and so often after later ones of the same subscription.
        public var delaysPerMille = 0
        /// Sent just after the next one of any subscriber.
        public var swapsPerMille = 0
        /// Accompanied by a forgery of it.
        public var forgeriesPerMille = 0
        public var forgeries = Forgery.allCases
        /// Milliseconds. Users of Apple's service have seen an hour.
        public var longestDelay: Int64 = 3_600_000

        public init(seed: UInt64) { self.seed = seed }
    }

    private struct Waiting: Comparable {
        let post: Post
        static func < (left: Waiting, right: Waiting) -> Bool {
            (left.post.at, left.post.place) < (right.post.at, right.post.place)
        }
        static func == (left: Waiting, right: Waiting) -> Bool { left.post.place == right.post.place }
    }

    private let configuration: Configuration
    private var source: Simulation.Notifications
    private var upcoming: Simulation.Step?
    private var waiting = Heap<Waiting>()
    private var random: Randomness
    private var posts = 0

    public init(_ notifications: Simulation.Notifications, _ configuration: Configuration) {
        self.configuration = configuration
        source = notifications
        upcoming = source.step()
        random = Randomness(configuration.seed, 5)
    }

    /// What comes next.
    public enum Step: Sendable {
        case post(Post)
        /// Apple decides on a refund then, by what was answered; ask again when that time has come.
        case undecided(until: Int64)

        public var at: Int64 {
            switch self {
            case .post(let post): post.at
            case .undecided(let until): until
            }
        }
    }

    /// Ends at what is not decided yet, too.
    public mutating func next() -> Post? {
        if case .post(let post)? = step() { post } else { nil }
    }

    /// `next` for whoever can wait for a decision. nil: everything is sent.
    public mutating func step() -> Step? {
        if case .undecided = upcoming { upcoming = source.step() }
        // Nothing is sent before its `signedDate`: what comes later than the first that waits cannot precede it.
        while let step = upcoming, waiting.first.map({ step.at <= $0.post.at }) ?? true {
            guard case .notification(let notification) = step else { return .undecided(until: step.at) }
            upcoming = source.step()
            plan(notification)
        }
        return (waiting.popFirst()?.post).map(Step.post)
    }

    /// Every kind of disturbance draws, happen or not: a change of one rate leaves the others where they were.
    private mutating func plan(_ notification: SimulatedNotification) {
        let isDelayed = random.chance(perMille: configuration.delaysPerMille)
        let delay = random.number(in: 0...configuration.longestDelay)
        let isSwapped = random.chance(perMille: configuration.swapsPerMille)
        let isDuplicate = random.chance(perMille: configuration.duplicatesPerMille)
        let gap = random.number(in: 0...configuration.longestDelay)
        let isForged = random.chance(perMille: configuration.forgeriesPerMille)
        let choice = random.next()

        var at = notification.at
        if isDelayed {
            at += delay
        } else if isSwapped, let upcoming {
            at = Swift.max(at, upcoming.at + 1)
        }
        add(notification, at: at)
        if isDuplicate { add(notification, at: at + gap, isDuplicate: true) }
        let possible = isForged ? configuration.forgeries.filter { $0.applies(to: notification) } : []
        if !possible.isEmpty {
            add(notification, at: at, forgery: possible[Int(choice % UInt64(possible.count))])
        }
    }

    private mutating func add(
        _ notification: SimulatedNotification, at time: Int64, forgery: Forgery? = nil, isDuplicate: Bool = false
    ) {
        posts += 1
        waiting.insert(
            Waiting(
                post: Post(
                    at: time, notification: notification, forgery: forgery, isDuplicate: isDuplicate, place: posts)))
    }
}
