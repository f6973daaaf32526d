import Testing

@testable import Ingest

@Suite struct `The bursts of the publisher` {
    private let start = ContinuousClock.now
    private var pace = BurstPace()

    @Test func `begin at once after a quiet time`() {
        #expect(pace.isDue(at: start, awaitsKafka: false))
        #expect(pace.isDue(at: start, awaitsKafka: true))
        var pace = pace
        pace.sent(at: start)
        #expect(pace.isDue(at: start + .seconds(1), awaitsKafka: false))
    }

    @Test func `collect for 20 ms while Kafka acknowledges soon`() {
        var pace = pace
        pace.sent(at: start)
        #expect(!pace.isDue(at: start + .milliseconds(19), awaitsKafka: false))
        #expect(pace.isDue(at: start + .milliseconds(20), awaitsKafka: false))
    }

    @Test func `wait for acknowledgements, but never longer than 60 ms`() {
        var pace = pace
        pace.sent(at: start)
        #expect(!pace.isDue(at: start + .milliseconds(59), awaitsKafka: true))
        #expect(pace.isDue(at: start + .milliseconds(60), awaitsKafka: true))
    }

    @Test func `count from the last one`() {
        var pace = pace
        pace.sent(at: start)
        pace.sent(at: start + .milliseconds(50))
        #expect(!pace.isDue(at: start + .milliseconds(69), awaitsKafka: false))
        #expect(pace.isDue(at: start + .milliseconds(70), awaitsKafka: false))
    }
}
