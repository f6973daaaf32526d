import Platform
import Testing

@Suite struct `A deadline` {
    @Test func `counts down, and never below zero`() {
        let far = Deadline(after: .seconds(60))
        #expect(far.remaining <= .seconds(60) && far.remaining > .seconds(30) && !far.hasPassed)
        let over = Deadline(after: .seconds(-1))
        #expect(over.remaining == .zero && over.hasPassed)
    }

    @Test func `passes`() {
        let deadline = Deadline(after: .milliseconds(20))
        pause(for: .milliseconds(30))
        #expect(deadline.hasPassed)
    }
}

@Suite struct `A duration` {
    @Test(
        arguments: [
            (.seconds(-1), 0), (.zero, 0), (.nanoseconds(1), 1), (.microseconds(1500), 1), (.seconds(2), 2000),
            (.seconds(1 << 40), Int32.max),
        ] as [(Duration, Int32)])
    func `is a time-out for C that does not turn into none before its time`(_ duration: Duration, _ timeout: Int32) {
        #expect(duration.timeoutMilliseconds == timeout)
    }

    @Test func `is milliseconds and seconds`() {
        #expect(Duration.microseconds(1999).wholeMilliseconds == 1)
        #expect(Duration.microseconds(-1999).wholeMilliseconds == -1)
        #expect(Duration.milliseconds(1500).fractionalSeconds == 1.5)
    }
}
