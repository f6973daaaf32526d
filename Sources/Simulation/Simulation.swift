// A make-believe App Store: subscribers who come, pay, fail, cancel and return, and what Apple would say of it.

/// One run of the store: the same configuration, the same bytes, on every machine.
///
/// Memory grows with the subscribers whose story is under way (about 1 KB each), not with the notifications.
public struct Simulation: Sendable {
    public struct Configuration: Sendable {
        public var seed: UInt64
        public var subscribers: Int
        public var apps: [SimulatedApp]
        /// Subscribers come evenly from `start` until `lastArrival`; nothing happens from `end` on. Milliseconds since 1970.
        public var start: Int64
        public var lastArrival: Int64
        public var end: Int64
        /// How many of a thousand subscribers live in sandbox, where a month takes five minutes.
        public var sandboxPerMille = 0
        /// How often each story is chosen, relative to the others; what is not here never.
        public var weights: [Story: Int]
        /// How many of a thousand subscribers live one of the stories about refund requests, instead of the one that the
        /// weights give them.
        public var refundsPerMille = 0
        /// How long Apple takes at most to decide on a refund, in milliseconds; nil: 2 to 40 hours.
        public var decidesWithin: Int64?
        /// Knows what was answered to refund requests; nil: nobody does, and chance decides.
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

    /// Why there is no such simulation; says what to change.
    public struct Fault: Error, Equatable, CustomStringConvertible {
        public let description: String
    }

    /// Every subscriber has 512 numbers of purchases, of which there are 10^9.
    public static let limitSubscribers = 1_000_000
    /// Thirty years: times a million subscribers still counted in 64 bits.
    static let limitSpan = 30 * 366 * day

    public let configuration: Configuration
    /// In the order of `Story.allCases`: a dictionary has none that two processes agree on.
    let weights: [Int]

    public init(_ configuration: Configuration) throws(Fault) {
        func demand(_ holds: Bool, _ words: String) throws(Fault) { if !holds { throw Fault(description: words) } }
        try demand(!configuration.apps.isEmpty, "a simulation needs an app that sells something")
        try demand(
            (0...Self.limitSubscribers).contains(configuration.subscribers),
            "the number of subscribers is between 0 and \(Self.limitSubscribers)")
        try demand(
            configuration.start >= 0 && configuration.start < configuration.end
                && configuration.end - configuration.start <= Self.limitSpan,
            "a simulation ends after its start, and within 30 years of it")
        try demand(
            (configuration.start...configuration.end).contains(configuration.lastArrival),
            "the last subscriber comes between start and end")
        try demand(
            (0...1000).contains(configuration.sandboxPerMille), "of a thousand subscribers 0 to 1000 live in sandbox")
        try demand(
            (0...1000).contains(configuration.refundsPerMille),
            "of a thousand subscribers 0 to 1000 live a story of refund requests")
        try demand(
            configuration.decidesWithin.map { $0 >= minute } ?? true, "a decision on a refund takes a minute or more")
        weights = Story.allCases.map { configuration.weights[$0] ?? 0 }
        try demand(
            weights.allSatisfy { (0...1_000_000).contains($0) } && weights.contains { $0 > 0 },
            "weights of stories are between 0 and 1000000, and one of them is not 0")
        self.configuration = configuration
    }

    /// Evenly, with some chance within each one's share, and in the order of their numbers: who has not come yet need not be
    /// thought of.
    func start(of subscriber: Int) -> Int64 {
        let span = configuration.lastArrival - configuration.start
        let from = span * Int64(subscriber) / Int64(configuration.subscribers)
        let until = span * Int64(subscriber + 1) / Int64(configuration.subscribers)
        var random = Randomness(configuration.seed, 3, UInt64(subscriber))
        return configuration.start + random.number(in: from...max(from, until - 1))
    }

    /// nil: the story has no more.
    func notification(_ index: Int, of subscriber: Int) -> Step? {
        let telling = Telling(self, subscriber: subscriber, aim: .notification(index))
        telling.run()
        if let until = telling.undecidedUntil { return .undecided(until: until) }
        return telling.notifications.first.map(Step.notification)
    }

    /// What comes next.
    public enum Step: Sendable {
        case notification(SimulatedNotification)
        /// Apple decides on a refund then, by what was answered; ask again when that time has come.
        case undecided(until: Int64)

        public var at: Int64 {
            switch self {
            case .notification(let notification): notification.at
            case .undecided(let until): until
            }
        }
    }

    /// Every notification of one subscriber, and the truth.
    public func life(of subscriber: Int) -> (notifications: [SimulatedNotification], truth: SubscriberTruth) {
        precondition((0..<configuration.subscribers).contains(subscriber), "there is no such subscriber")
        let telling = Telling(self, subscriber: subscriber, aim: .everything)
        telling.run()
        return (telling.notifications, telling.truth)
    }

    /// What the subscriber lives through, without telling it.
    public func story(of subscriber: Int) -> Story {
        Telling(self, subscriber: subscriber, aim: .everything).story
    }

    public func truth(of subscriber: Int) -> SubscriberTruth { life(of: subscriber).truth }
}

extension Simulation {
    /// All notifications in order of `at`; of equal times the subscriber who came first. Each is made when it is asked for.
    public var notifications: Notifications { Notifications(self) }

    public struct Notifications: Sequence, IteratorProtocol {
        private struct Next: Comparable {
            let subscriber: Int
            /// Among the notifications of the subscriber.
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

        /// Ends at what is not decided yet, too.
        public mutating func next() -> SimulatedNotification? {
            if case .notification(let notification)? = step() { notification } else { nil }
        }

        /// `next` for whoever can wait for a decision. nil: everything is told.
        public mutating func step() -> Step? {
            // Whoever comes no later than the next notification may have an earlier one.
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
            // Asked again: it may be decided by now, and is told seconds later, after others perhaps.
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
