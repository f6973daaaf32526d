// A simulated App Store: subscribers arrive, pay, fail, cancel and return, and Apple notifies about it.

/// One run of the store: the same configuration gives the same bytes on every machine.
///
/// Memory grows with the subscribers whose story is in progress (about 1 KB each), not with the notifications.
public struct Simulation: Sendable {
    public struct Configuration: Sendable {
        public var seed: UInt64
        public var subscribers: Int
        public var apps: [SimulatedApp]
        /// Subscribers arrive evenly from `start` until `lastArrival`; nothing happens from `end` on. Milliseconds
        /// since 1970.
        public var start: Int64
        public var lastArrival: Int64
        public var end: Int64
        /// How many of a thousand subscribers are in sandbox, where a month takes five minutes.
        public var sandboxPerMille = 0
        /// How often each story is chosen, relative to the others; a story without a weight is never chosen.
        public var weights: [Story: Int]
        /// How many of a thousand subscribers get a story with refund requests instead of the story that the weights
        /// give.
        public var refundsPerMille = 0
        /// The longest time that Apple takes to decide on a refund, in milliseconds; nil: it takes 2 to 40 hours.
        public var decidesWithin: Int64?
        /// Knows the answers to refund requests; nil: nobody answers, and decisions are random.
        public var desk: (any RefundDesk)?

        public init(seed: UInt64, subscribers: Int, apps: [SimulatedApp], start: Int64, end: Int64) {
            self.seed = seed
            self.subscribers = subscribers
            self.apps = apps
            self.start = start
            self.end = end
            lastArrival = end
            weights = Dictionary(uniqueKeysWithValues: Story.allCases.map { ($0, $0.defaultWeight) })
        }
    }

    /// Why the configuration is invalid, and what to change.
    public struct Fault: Error, Equatable, CustomStringConvertible {
        public let description: String
    }

    /// Every subscriber has 512 purchase numbers, of 10^9 in total.
    public static let limitSubscribers = 1_000_000
    /// Thirty years: times a million subscribers still fit into 64 bits.
    static let limitSpan = 30 * 366 * day

    public let configuration: Configuration
    /// In the order of `Story.allCases`, because the order of a dictionary differs between processes.
    let weights: [Int]

    public init(_ configuration: Configuration) throws(Fault) {
        func demand(_ holds: Bool, _ words: String) throws(Fault) { if !holds { throw Fault(description: words) } }
        try demand(!configuration.apps.isEmpty, "a simulation needs at least one app")
        try demand(
            (0...Self.limitSubscribers).contains(configuration.subscribers),
            "the number of subscribers must be between 0 and \(Self.limitSubscribers)")
        try demand(
            configuration.start >= 0 && configuration.start < configuration.end
                && configuration.end - configuration.start <= Self.limitSpan,
            "the end must be after the start, and at most 30 years later")
        try demand(
            (configuration.start...configuration.end).contains(configuration.lastArrival),
            "the last arrival must be between start and end")
        try demand(
            (0...1000).contains(configuration.sandboxPerMille), "sandboxPerMille must be between 0 and 1000")
        try demand(
            (0...1000).contains(configuration.refundsPerMille),
            "refundsPerMille must be between 0 and 1000")
        try demand(
            configuration.decidesWithin.map { $0 >= minute } ?? true, "decidesWithin must be at least a minute")
        weights = Story.allCases.map { configuration.weights[$0] ?? 0 }
        try demand(
            weights.allSatisfy { (0...1_000_000).contains($0) } && weights.contains { $0 > 0 },
            "weights of stories must be between 0 and 1000000, and at least one must not be 0")
        self.configuration = configuration
    }

    /// Evenly, with some randomness within each one's share, and in the order of their numbers: subscribers that have
    /// not arrived need no attention.
    func start(of subscriber: Int) -> Int64 {
        let span = configuration.lastArrival - configuration.start
        let from = span * Int64(subscriber) / Int64(configuration.subscribers)
        let until = span * Int64(subscriber + 1) / Int64(configuration.subscribers)
        var random = Randomness(configuration.seed, 3, UInt64(subscriber))
        return configuration.start + random.number(in: from...max(from, until - 1))
    }

    /// nil: the story has no more notifications.
    func notification(_ index: Int, of subscriber: Int) -> Step? {
        let telling = Telling(self, subscriber: subscriber, aim: .notification(index))
        telling.run()
        if let until = telling.undecidedUntil { return .undecided(until: until) }
        return telling.notifications.first.map(Step.notification)
    }

    /// The next notification, or a wait.
    public enum Step: Sendable {
        case notification(SimulatedNotification)
        /// Apple decides on a refund at that time, based on the answer; ask again when it has come.
        case undecided(until: Int64)

        public var at: Int64 {
            switch self {
            case .notification(let notification): notification.at
            case .undecided(let until): until
            }
        }
    }

    /// All notifications of one subscriber, and the truth.
    public func life(of subscriber: Int) -> (notifications: [SimulatedNotification], truth: SubscriberTruth) {
        precondition((0..<configuration.subscribers).contains(subscriber), "there is no such subscriber")
        let telling = Telling(self, subscriber: subscriber, aim: .everything)
        telling.run()
        return (telling.notifications, telling.truth)
    }

    /// The subscriber's story, without running it.
    public func story(of subscriber: Int) -> Story {
        Telling(self, subscriber: subscriber, aim: .everything).story
    }

    public func truth(of subscriber: Int) -> SubscriberTruth { life(of: subscriber).truth }
}

extension Simulation {
    /// All notifications in the order of `at`; on a tie the subscriber who arrived first comes first. Each is made on
    /// demand.
    public var notifications: Notifications { Notifications(self) }

    public struct Notifications: Sequence, IteratorProtocol {
        private struct Next: Comparable {
            let subscriber: Int
            /// The index among the subscriber's notifications.
            let index: Int
            let step: Step

            private var place: (Int64, Int, Int) { (step.at, subscriber, index) }
            static func < (left: Next, right: Next) -> Bool { left.place < right.place }
            static func == (left: Next, right: Next) -> Bool { left.place == right.place }
        }

        private let simulation: Simulation
        private var underWay = Heap<Next>()
        private var comers = 0

        fileprivate init(_ simulation: Simulation) { self.simulation = simulation }

        /// Subscribers whose story has begun and is not over.
        public var subscribersUnderWay: Int { underWay.count }

        /// Also ends at an undecided refund.
        public mutating func next() -> SimulatedNotification? {
            if case .notification(let notification)? = step() { notification } else { nil }
        }

        /// `next` for callers that can wait for a decision. nil: there are no more notifications.
        public mutating func step() -> Step? {
            // A subscriber who arrives no later than the next notification may have an earlier one.
            while comers < simulation.configuration.subscribers,
                underWay.first.map({ simulation.start(of: comers) <= $0.step.at }) ?? true
            {
                add(0, of: comers)
                comers += 1
            }
            guard let next = underWay.popFirst() else { return nil }
            if case .notification = next.step {
                add(next.index + 1, of: next.subscriber)
                return next.step
            }
            // It is asked again, because the decision may be known by now. The notification follows seconds later,
            // perhaps after others.
            add(next.index, of: next.subscriber)
            guard let first = underWay.first, case .undecided = first.step else { return step() }
            return first.step
        }

        private mutating func add(_ index: Int, of subscriber: Int) {
            if let step = simulation.notification(index, of: subscriber) {
                underWay.insert(Next(subscriber: subscriber, index: index, step: step))
            }
        }
    }
}
