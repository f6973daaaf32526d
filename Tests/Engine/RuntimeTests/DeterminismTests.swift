import KafkaTestKit
import Testing

@Suite struct `One input, read by two processes` {
    private func output(_ commitInterval: Int, _ cacheBytes: Int, _ recordsPerPoll: Int) async throws -> String {
        let probe = try ChildProcess(
            try productPath("replay-probe"), ["\(commitInterval)", "\(cacheBytes)", "\(recordsPerPoll)"])
        #expect(try await probe.wait(within: .seconds(120)) == .exited(code: 0))
        return probe.standardOutput
    }

    @Test func `gives the same bytes, headers and ids, however the work is cut into cycles`() async throws {
        let whole = try await output(1000, 64 << 20, 500)
        #expect(whole.split(separator: "\n").count > 3000)
        #expect(whole.contains("woken") && whole.contains("ledger.dead-letters") && whole.contains("again"))
        for (commitInterval, cacheBytes, recordsPerPoll) in [(0, 300, 1), (1, 5000, 7), (20, 300, 400)] {
            let other = try await output(commitInterval, cacheBytes, recordsPerPoll)
            if other == whole { continue }
            let place = zip(whole.split(separator: "\n"), other.split(separator: "\n")).first { $0 != $1 }
            Issue.record("cycles of \(commitInterval) ms and \(recordsPerPoll) records: \(String(describing: place))")
        }
    }
}
