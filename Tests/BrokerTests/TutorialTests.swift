import Foundation
import KafkaTestKit
import Simulation
import Testing

extension RealBroker {
    @Suite struct `The tutorial of the first run` {
        @Test func `has commands that a reader can paste, each in its place`() async throws {
            let page = try String(
                contentsOf: URL(fileURLWithPath: #filePath).appendingPathComponent(
                    "../../../docs/tutorial/first-run.md"
                ).standardized, encoding: .utf8)
            let part = try #require(page.components(separatedBy: "\n## Part 2").last)
            let blocks = part.matches(of: #/(?s)\n```sh\n(.*?)\n```\n/#).map { String($0.1) }
            #expect(blocks.count == 8)
            let broker = try await Broker.shared()
            let scratch = try ScratchDirectory("tutorial")
            var text = blocks.joined(separator: "\n")
                .replacing("localhost:9092", with: broker.bootstrap).replacing("/tmp/", with: "\(scratch.path)/")
                .replacing(
                    "$PWD/.build/release",
                    with: URL(fileURLWithPath: try productPath("perennial")).deletingLastPathComponent().path)
            var addresses: [String: String] = [:]
            for port in ["8080", "8081", "9464", "9465", "9466", "9467"] {
                let address = "127.0.0.1:\(try Ports.free())"
                #expect(text.contains("127.0.0.1:\(port)"))
                text = text.replacing("127.0.0.1:\(port)", with: address)
                addresses[port] = address
            }
            // Topics of its own. On the page ingest has the default address for probes.
            let settings = ["PERENNIAL_TOPIC_PREFIX": "tutorial", "PERENNIAL_ADMIN_LISTEN": addresses["9464"]!]
            let lines = text.split(separator: "\n").map(String.init)
            let script = try scratch.write(
                Self.functions + lines.map(Self.step).joined(separator: "\n") + "\n", to: "tutorial.sh")
            let reader = try ChildProcess(
                "/bin/bash", [script], environment: .inherited(adding: settings), workingDirectory: scratch.path,
                mergesErrors: true)
            do {
                let ending = try await reader.wait(within: .seconds(600))
                #expect(ending == .exited(code: 0), "\(reader.standardOutput.suffix(4000))")
            } catch {
                Issue.record("\(error): \(reader.standardOutput.suffix(4000))")
            }
            // What the page says of the output.
            let said = reader.standardOutput
            #expect(said.contains("\"access\":"), "the answer about a customer")
            // Which forgeries there are depends on the day: the stories move on every midnight.
            let listed = said.components(separatedBy: "\n$ ").filter { $0.hasPrefix("perennial dead-letters list") }
            #expect(
                listed.contains { text in Forgery.allCases.contains { text.contains($0.reason) } },
                "the forgeries have reasons")
            #expect(!said.contains("\nfault"), "check finds nothing wrong")
        }

        /// `step CODE LINE` runs a line once, `again CODE LINE` until it ends with this code.
        private static let functions = """
            step() {
                printf '\\n$ %s\\n' "$2"
                eval "$2" 2>&1
                code=$?
                [ "$code" = "$1" ] || { echo "it ended with $code, not with $1"; kill $(jobs -p); exit 1; }
            }
            again() {
                for _ in $(seq 120); do
                    if out=$(eval "$2" 2>&1) && grep -q "$1" <<<"$out"; then break; fi
                    sleep 1
                done
                printf '\\n$ %s\\n%s\\n' "$2" "$out"
                grep -q "$1" <<<"$out" || { echo "it did not say $1"; kill $(jobs -p); exit 1; }
            }

            """

        private static func step(_ line: String) -> String {
            let quoted = "'" + line.replacing("'", with: #"'\''"#) + "'"
            if line.hasPrefix("kill ") {
                let wait = #"for process in $started; do step 0 "wait $process"; done"#
                return "started=$(jobs -p)\nstep 0 \(quoted)\n\(wait)"
            }
            if line.hasPrefix("curl ") { return "again '\"access\":' \(quoted)" }
            if line.hasPrefix("perennial inspect subscription") { return "again 'same in entitlements' \(quoted)" }
            if line.hasPrefix("perennial inspect metrics") { return "again 'RefundedAmount / revenue' \(quoted)" }
            // Nothing is there yet, so there is something to do.
            return "step \(line.hasPrefix("perennial topics plan") ? 1 : 0) \(quoted)"
        }
    }
}
