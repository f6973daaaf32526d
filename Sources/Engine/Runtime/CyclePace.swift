// When a worker commits what it has processed.

/// The open cycle of a worker: how long it lasts, and how many records it has. A value without a clock: the worker tells
/// it what happens, and when.
///
/// A transaction costs the broker as much as some hundred records. So records that arrive soon after a commit wait for
/// each other, and a backlog makes large cycles. A record that comes after a quiet time waits for nothing.
struct CyclePace {
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

    mutating func committed(at now: Duration) {
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
        let due = lastRush + interval
        return (start.map { min(due, $0 + longest) } ?? due) - now
    }

    /// No cycle lasts longer.
    private var longest: Duration { max(interval, backlogInterval) }
}
