// How notifications are sent: some twice, some late, some out of order, some forged.

public import Contract

/// When Apple retries.
public enum RetrySchedule {
    private static let hours: [Int64] = [1, 12, 24, 48, 72]

    /// Milliseconds to wait after each failed attempt, until Apple gives up. In sandbox there is only one attempt.
    public static func delays(in environment: Contract.Environment) -> [Int64] {
        switch environment {
        case .production: hours.map { $0 * hour }
        case .sandbox: []
        }
    }
}

/// One request to the receiver.
public struct Post: Sendable {
    /// When it is sent, in simulated time.
    public let at: Int64
    public let notification: SimulatedNotification
    /// nil: the notification is genuine.
    public let forgery: Forgery?
    /// A second delivery although the first did not fail.
    public let isDuplicate: Bool
    let place: Int

    /// The value of `signedPayload`.
    public func signedPayload(by authority: SimulatedAuthority, forger: Forger) -> [UInt8] {
        if let forgery { forger.forge(forgery, of: notification) } else { notification.signedPayload(by: authority) }
    }
}

/// Turns notifications into posts sorted by time, with random disturbances at the given rates. The same seed gives the
/// same disturbances.
///
/// Memory grows with the number of delayed posts.
public struct Delivery: Sequence, IteratorProtocol {
    public struct Configuration: Sendable {
        public var seed: UInt64
        /// Per thousand notifications: sent again within `longestDelay` although the first delivery succeeded.
        public var duplicatesPerMille = 0
        /// Sent up to `longestDelay` late, and so often after later notifications of the same subscription.
        public var delaysPerMille = 0
        /// Sent just after the next notification of any subscriber.
        public var swapsPerMille = 0
        /// Sent together with a forgery of it.
        public var forgeriesPerMille = 0
        public var forgeries = Forgery.allCases
        /// In milliseconds. Users of Apple's service have seen delays of an hour.
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

    /// The next post, or a wait.
    public enum Step: Sendable {
        case post(Post)
        /// Apple decides on a refund at that time, based on the answer; ask again when it has come.
        case undecided(until: Int64)

        public var at: Int64 {
            switch self {
            case .post(let post): post.at
            case .undecided(let until): until
            }
        }
    }

    /// Also ends at an undecided refund.
    public mutating func next() -> Post? {
        if case .post(let post)? = step() { post } else { nil }
    }

    /// `next` for callers that can wait for a decision. nil: everything is sent.
    public mutating func step() -> Step? {
        if case .undecided = upcoming { upcoming = source.step() }
        // Nothing is sent before its `signedDate`, so no later notification can precede the first waiting post.
        while let step = upcoming, waiting.first.map({ step.at <= $0.post.at }) ?? true {
            guard case .notification(let notification) = step else { return .undecided(until: step.at) }
            upcoming = source.step()
            plan(notification)
        }
        return (waiting.popFirst()?.post).map(Step.post)
    }

    /// Every kind of disturbance draws a random number whether it happens or not: changing one rate does not affect the
    /// others.
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
