// `perennial size`: what an installation needs, from measured figures.

package import CommandLine
import Configuration
import Platform
import Settings
import Sizing

extension Command {
    package static let size = Command(
        .size, "Says what an installation needs: records, disk, cores, memory, processes and brokers.",
        options: SizeOptions.options,
        details: """
            It computes from what is asked and from figures that `make bench ROWS=sizing` has measured; the output names their date and
            machine. It connects to nothing. partitions, topics.replication.factor, tick.interval.ms, archive.signed.payloads,
            worker.threads, state.cache.bytes and ingest.max.buffered.bytes are read from the settings, as by the commands that use them.
            What is not given is assumed, and the output says so. docs/operate/sizing.md explains each number.
            Exit codes: 0 done; 2 wrong usage, or options that contradict each other.
            """,
        action: .configured { invocation, configuration in
            guard let format = invocation.choice("format", of: ["text", "json"]) else { return .wrongUsage }
            do throws(SizingFaults) {
                let options = try SizeOptions(invocation, configuration)
                let report = SizeReport(sizing: Sizing(of: options.installation), assumptions: options.assumptions)
                for line in format == "json" ? [report.json] : report.lines { invocation.output.data(line) }
                return .done
            } catch {
                for text in error.texts { invocation.output.message("perennial size: \(text)") }
                invocation.output.message("perennial help size shows its options")
                return .wrongUsage
            }
        })
}
