import Contract
import Testing

@testable import Clock

@Suite struct `The status of a ticker` {
    private static let trouble = TickerTrouble("the group gives no partitions")
    private static let ahead = TickerTrouble("the clock runs ahead", isTimeRefused: true)

    @Test func `tells a process that is there to tick of every trouble`() {
        let status = TickerStatus()
        #expect(status.reason(for: .ticking) == nil)
        status.set(Self.trouble, for: .sandbox)
        status.set(Self.ahead, for: .production)
        #expect(
            status.reason(for: .ticking) == "production: the clock runs ahead; sandbox: the group gives no partitions")
    }

    @Test func `tells one that has other work of the time of its host only`() {
        let status = TickerStatus()
        status.set(Self.trouble, for: .sandbox)
        #expect(status.reason(for: .timeOfHost) == nil)
        status.set(Self.ahead, for: .production)
        #expect(status.reason(for: .timeOfHost) == "production: the clock runs ahead")
        status.set(nil, for: .production)
        #expect(status.reason(for: .timeOfHost) == nil)
    }
}
