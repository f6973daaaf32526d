import Glibc
import IngestTestKit
import KafkaTestKit
import Testing

/// nil: nobody has asked for the long form.
private let floodSeconds = getenv("PERENNIAL_TEST_FLOOD_SECONDS").flatMap { Double(String(cString: $0)) }
/// What is measured instead of the program that was built with the tests.
private let releaseProgram = getenv("PERENNIAL_TEST_FLOOD_PROGRAM").map { String(cString: $0) }

private let limits = releaseProgram == nil ? FloodLimits.ofDebugBuild : FloodLimits()

extension RealBroker {
    @Suite(.serialized) struct `An ingest under a flood` {
        /// `make floods` takes a minute for each.
        private static let seconds = floodSeconds ?? 5
        /// Where nobody has asked for figures, a machine with other work is given another try.
        private static let tries = floodSeconds == nil ? 2 : 1

        private static let fixture = Result { try FloodRun.fixture(seconds: seconds) }

        @Test func `is measured in a table`() {
            for line in FloodFigures.head(limits) { print("floods: \(line)") }
        }

        @Test(arguments: FloodKind.allCases)
        func `answers genuine notifications all the same, and keeps within its limits`(_ kind: FloodKind) async throws {
            let program = try releaseProgram ?? productPath("perennial")
            let fixture = try Self.fixture.get()
            for attempt in 1...Self.tries {
                let run = try await FloodRun.start(
                    kind, program, fixture, seconds: Self.seconds,
                    patienceWithMemory: .seconds(floodSeconds == nil ? 15 : 60))
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
