import Testing

@testable import Kafka

@Suite struct `The time of calls` {
    private func noted(_ milliseconds: [Int], backoff: Int = 100, longest: Int? = nil) -> CallTimes {
        var times = CallTimes(backoff: .milliseconds(backoff), longest: longest.map { .milliseconds($0) })
        for taken in milliseconds { times.note(.commit, took: .milliseconds(taken)) }
        return times
    }

    @Test func `has a limit below the pause before a request is sent again`() {
        for (backoff, limit) in [(50, 37.5), (100, 75), (400, 300), (500, 375), (2000, 375)] {
            #expect(noted([], backoff: backoff).limit == .microseconds(Int(limit * 1000)))
        }
        // A library whose pause before a retry is shorter than configured.
        #expect(noted([], backoff: 400, longest: 200).limit == .milliseconds(150))
    }

    @Test func `follows what calls take, for the client that is made next`() {
        var times = noted([80, 81, 82, 83, 84])
        #expect(times.limit == .milliseconds(75), "the client in use pauses as before")
        times.adapt()
        #expect(times.backoff == .milliseconds(82) * 4 * 4 / 3)
        #expect(times.limit == times.backoff * 3 / 4)
        #expect(times.limit > .milliseconds(82 * 3))
        // The slowest kind of call decides.
        for _ in 0..<5 { times.note(.sendOffsets, took: .milliseconds(10)) }
        times.adapt()
        #expect(times.backoff == .milliseconds(82) * 4 * 4 / 3)
        for _ in 0..<5 { times.note(.commit, took: .milliseconds(4)) }
        times.adapt()
        #expect(times.backoff == .milliseconds(100), "never below the user's setting")
    }

    @Test func `is not taken from the one call that was slow`() {
        var times = noted([4, 5, 900, 4, 5])
        times.adapt()
        #expect(times.backoff == .milliseconds(100))
    }

    @Test func `never lets the pause grow beyond what all requests keep`() {
        var times = noted([900, 900, 900])
        times.adapt()
        #expect(times.backoff == CallTimes.longestBackoff && times.isAtItsEnd)
        var short = noted([900, 900, 900], longest: 200)
        short.adapt()
        #expect(short.backoff == .milliseconds(200) && short.limit == .milliseconds(150))
    }
}

@Suite struct `The rate of replacements` {
    @Test func `is told when it is more than one in ten, and then not for a while`() {
        var rate = ReplacementRate()
        let start = ContinuousClock.now
        for number in 0..<1000 { #expect(rate.note(number % 10 == 0, at: start) == nil) }
        var told: [Int] = []
        for number in 0..<200 { rate.note(number % 5 == 0, at: start).map { told.append($0) } }
        #expect(told == [11])
        #expect(rate.note(true, at: start + .seconds(599)) == nil)
        #expect(rate.note(true, at: start + .seconds(601)) != nil)
    }

    @Test func `is told of a producer that is replaced each time`() {
        var rate = ReplacementRate()
        let told = (0..<20).compactMap { _ in rate.note(true) }
        #expect(told == [11])
    }
}
