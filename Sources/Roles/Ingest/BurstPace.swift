// When the publisher sends what it has collected.

/// Publications are sent in bursts, because a request to Kafka costs a broker and its followers much more than one more
/// record in it. librdkafka makes one request for each partition. A value without a clock.
///
/// A publication that comes after a quiet time is sent at once. The next burst waits for the acknowledgement of the
/// last one, so brokers that cannot keep up get fewer requests with more records in each.
struct BurstPace {
    /// From one burst to the next: at 1,500 publications a second over 12 partitions a request has two or three.
    static let interval: Duration = .milliseconds(20)
    /// A burst waits no longer for an acknowledgement: a single slow broker must not hold up the others.
    static let longestInterval: Duration = .milliseconds(60)

    private var lastBurst: ContinuousClock.Instant?

    mutating func sent(at now: ContinuousClock.Instant) { lastBurst = now }

    /// - Parameter awaitsKafka: records that were sent have no report yet.
    func isDue(at now: ContinuousClock.Instant, awaitsKafka: Bool) -> Bool {
        guard let lastBurst else { return true }
        return lastBurst.duration(to: now) >= (awaitsKafka ? Self.longestInterval : Self.interval)
    }
}
