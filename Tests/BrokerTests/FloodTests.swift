import Glibc
import IngestTestKit
import KafkaTestKit
import Testing

/// nil: the long form was not asked for.
private let floodSeconds = getenv("PERENNIAL_TEST_FLOOD_SECONDS").flatMap { Double(String(cString: $0)) }
/// The program to measure instead of the one built with the tests.
private let releaseProgram = getenv("PERENNIAL_TEST_PROGRAM").map { String(cString: $0) }

/// The name of the only flood to run, such as `chain`; nil: all of them are run.
private let floodKind = getenv("PERENNIAL_TEST_FLOOD_KIND").map { String(cString: $0) }

private let limits = releaseProgram == nil ? FloodLimits.ofDebugBuild : FloodLimits()

extension RealBroker {
    @Suite(.serialized) struct `An ingest under a flood` {
        /// `make floods` runs each for a minute.
        private static let seconds = floodSeconds ?? 3
        /// Unless figures were asked for, a machine that is busy with other work may try again.
        private static let tries = floodSeconds == nil ? 2 : 1

        private static let fixture = Result { try FloodRun.fixture(seconds: seconds) }

        @Test func `is measured in a table`() {
            for line in FloodFigures.head(limits) { print("floods: \(line)") }
        }

        @Test(arguments: FloodKind.allCases.filter { floodKind == nil || "\($0)" == floodKind })
        func `answers genuine notifications all the same, and keeps within its limits`(_ kind: FloodKind) async throws {
            let program = try releaseProgram ?? productPath("perennial")
            let fixture = try Self.fixture.get()
            for attempt in 1...Self.tries {
                let run = try await FloodRun.start(
                    kind, program, fixture, seconds: Self.seconds,
                    restOfMemory: .seconds(floodSeconds == nil ? 15 : 60), readsMemoryEarly: floodSeconds == nil)
                let figures = try await run.measure()
                print("floods: \(figures.row)")
                let faults = figures.faults(limits)
                guard !faults.isEmpty else { return }
                print("floods: over: \(faults.joined(separator: "; "))")
                guard attempt == Self.tries else { continue }
                Issue.record("\(kind.rawValue): \(faults.joined(separator: "; "))")
            }
        }
    }
}

@Suite struct `The judge of a flood` {
    private static let good = FloodFigures(
        kind: .chain, sent: 1000, answers: "1000 × 400", usual: 1000, rate: 300, genuine: 50, genuineAccepted: 50,
        median: 30,
        longest: 1999, livez: (20, 20, 100), peakBytes: 199 << 20, laterBytes: 99 << 20, later: .seconds(1),
        rejectedBytes: 8 << 20, microsecondsEach: 300, surplusRecords: 0, logLines: 20)

    private static let broken: [(String, @Sendable (inout FloodFigures) -> Void)] = [
        ("the flood got other answers than expected: 1000 × 400", { $0.usual = 799 }),
        ("the flood got other answers than expected: 1000 × 400", { $0.sent = 0 }),
        ("1 of 50 have no 200", { $0.genuineAccepted = 49 }),
        ("0 of 0 have no 200", { ($0.genuine, $0.genuineAccepted) = (0, 0) }),
        ("a genuine notification waited 2001 ms", { $0.longest = 2001 }),
        ("genuine notifications waited 1001 ms at the median", { $0.median = 1001 }),
        ("200 MiB resident", { $0.peakBytes = 200 << 20 }),
        ("100 MiB resident after 1.0 s", { $0.laterBytes = 100 << 20 }),
        ("8388609 bytes in rejected", { $0.rejectedBytes += 1 }),
        ("301 us of CPU for each request", { $0.microsecondsEach = 301 }),
        ("1 records too many in notifications", { $0.surplusRecords = 1 }),
        ("21 lines in the log", { $0.logLines = 21 }),
        ("/livez: 19 of 20 have a 200, the longest after 100 ms", { $0.livez?.accepted = 19 }),
        ("/livez: 20 of 20 have a 200, the longest after 2001 ms", { $0.livez?.longest = 2001 }),
    ]

    @Test func `is content with what is promised, and names everything that is over`() {
        #expect(Self.good.faults(FloodLimits()) == [])
        for (fault, spoil) in Self.broken {
            var figures = Self.good
            spoil(&figures)
            #expect(figures.faults(FloodLimits()) == [fault])
        }
    }
}
