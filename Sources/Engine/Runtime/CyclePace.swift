// When a worker commits what it has processed.

/// The open cycle of a worker: how long it lasts, and how many records it has. A value without a clock: the worker tells
/// it what happens, and when.
///
/// A transaction costs the broker as much as some hundred records. So records that arrive soon after a commit wait for
/// each other, and a backlog makes large cycles. A record that comes after a quiet time waits for nothing. While the
/// brokers cannot keep up, commits take longer than they need to: then they come more seldom.
struct CyclePace {
    /// The worker rests this many times as long as commits wait for the brokers.
    private static let restsForDelay = 4
    private static let longestRest: Duration = .milliseconds(500)
    /// The longest wait of a poll. A longer one would delay a stop, a rebalance and the return of a restored partition.
    private static let idleWait: Duration = .milliseconds(100)

    /// From a commit to the next one, while the input is drained. Within it Kafka also writes the markers of the last
    /// transaction, for which the next one would have to wait.
    let interval: Duration
    /// How long the cycle of a backlog lasts, unless `interval` is longer.
    let backlogInterval: Duration
    let recordLimit: Int

    private var start: Duration?
    private(set) var records = 0
    /// When the last cycle was committed, or a poll last left records behind, whichever came later.
    private var lastRush: Duration?
    /// The quickest commit of late: what a commit takes when the brokers have nothing else to do.
    private var quickest: Duration?
    /// How much longer commits take now, on average.
    private var delay: Duration = .zero

    init(interval: Duration, backlogInterval: Duration, recordLimit: Int) {
        self.interval = interval
        self.backlogInterval = backlogInterval
        self.recordLimit = recordLimit
    }

    var isOpen: Bool { start != nil }

    /// Records have arrived; the first ones open the cycle.
    mutating func begin(at now: Duration) { if start == nil { start = now } }
    mutating func addRecord() { records += 1 }
    /// The poll returned as many records as it may: more are there.
    mutating func leftRecords(at now: Duration) { lastRush = now }

    /// The commit took `duration` and has ended `now`.
    mutating func committed(in duration: Duration, at now: Duration) {
        // It grows slowly, because brokers may have moved away, or have become slower for good.
        let quickest = min(duration, (self.quickest ?? duration) * 257 / 256)
        self.quickest = quickest
        // One slow commit is no load.
        delay += (duration - quickest - delay) / 8
        lastRush = now
        end()
    }

    /// The cycle is over, whether or not there was something to commit.
    mutating func end() {
        start = nil
        records = 0
    }

    /// A drained input is committed now.
    func isDue(at now: Duration) -> Bool { rest(at: now) <= .zero }

    /// A backlog is committed now.
    func isFull(at now: Duration) -> Bool {
        guard let start else { return false }
        return records >= recordLimit || now - start >= longest
    }

    /// How long the next poll may wait for a record.
    func wait(at now: Duration) -> Duration { isOpen ? max(.zero, min(Self.idleWait, rest(at: now))) : Self.idleWait }

    private func rest(at now: Duration) -> Duration {
        guard let lastRush else { return .zero }
        let due = lastRush + pacedInterval
        return (start.map { min(due, $0 + longest) } ?? due) - now
    }

    private var pacedInterval: Duration { max(interval, min(delay * Self.restsForDelay, Self.longestRest)) }
    /// No cycle lasts longer.
    private var longest: Duration { max(pacedInterval, backlogInterval) }
}
