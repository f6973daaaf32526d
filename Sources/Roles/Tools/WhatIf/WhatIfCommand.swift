// `perennial consumption what-if`: which answers another policy would have given.

import Cluster
package import CommandLine
package import Configuration
import Consumption
import Contract
import Kafka
import Log
import Notices
package import Platform
package import Settings

extension Command {
    /// The options of `what-if`, for the command `consumption`.
    package static let whatIfOptions = [
        CommandOption(
            "policy", value: "FILE", effect: "what-if: the policy to try; it is used for nothing else."),
        CommandOption(
            "from", value: "TIME",
            effect: "what-if: only requests since then: `2026-11-20`, `2026-11-20T10:00:00Z` (UTC), `2h`, `7d`."),
        CommandOption("to", value: "TIME", effect: "what-if: only requests before then."),
        CommandOption(
            "format", value: "FORMAT",
            effect: "what-if: text (default), a summary and the newest changes, or json with all of them."),
    ]

    package static let whatIfDetails = """
        what-if reads the topic consumption of one environment and applies another policy to every request that was decided or
        withheld by policy, from the facts that the decision carries. It shows which answers would differ, and how much money
        was at stake. It sends nothing and changes nothing. It leaves out requests that no policy decided (without consent,
        of another app, shared). --from and --to limit when Apple signed a request. Exit code 2: the policy is wrong; each
        error is shown with line and column.
        """

    package static func whatIf(_ invocation: Invocation, _ configuration: Configuration) -> ExitCode {
        do throws(ToolFault) {
            let query = try WhatIfQuery(invocation, now: WallClock.milliseconds())
            let cluster = try ClusterAccess.cluster(configuration, as: "inspect")
            let topic = configuration.names.topic(.consumption)
            let run = WhatIfRun(
                query: query, names: configuration.names,
                partitions: cluster.topics.first { $0.name == topic }?.partitions.map(\.id).sorted(),
                log: configuration.clientProperties.makeLog(), output: invocation.output)
            return try run.run()
        } catch {
            for line in error.lines { invocation.output.message("perennial consumption: \(line)") }
            return error.code
        }
    }
}

/// The arguments of `what-if`.
struct WhatIfQuery: Sendable {
    let policy: RefundPolicy
    let path: String
    let period: RequestPeriod
    let isJSON: Bool

    init(_ invocation: Invocation, now: Int64) throws(ToolFault) {
        guard let path = invocation.option("policy") else {
            throw ToolFault(.wrongUsage, "what-if needs --policy FILE: the policy to try")
        }
        let format = invocation.option("format") ?? "text"
        guard format == "text" || format == "json" else {
            throw ToolFault(.wrongUsage, "--format must be text or json, not \(quoted(format))")
        }
        isJSON = format == "json"
        period = try RequestPeriod(invocation, now: now)
        self.path = path
        policy = try Self.policy(path)
    }

    private static func policy(_ path: String) throws(ToolFault) -> RefundPolicy {
        let bytes: [UInt8]
        do throws(FileFault) {
            bytes = try readFile(path, limitBytes: RefundPolicy.limitBytes)
        } catch {
            throw ToolFault(.wrongUsage, "--policy: \(error)")
        }
        do throws(PolicyFaults) {
            return try RefundPolicy.read(bytes) { nearestName(to: $0, among: $1) }
        } catch {
            throw ToolFault(.wrongUsage, lines: error.faults.map { "\(path), \($0)" })
        }
    }
}

/// One call, on any log.
struct WhatIfRun {
    let query: WhatIfQuery
    let names: Names
    /// Partitions of the topic `consumption`; nil: the topic does not exist.
    let partitions: [Int32]?
    let log: any RecordLog
    let output: Output

    func run() throws(ToolFault) -> ExitCode {
        let topic = names.topic(.consumption)
        guard let partitions else { throw ToolFault.missing(topic: topic) }
        var options = ReaderOptions(
            name: "perennial-inspect", group: "\(names.prefix).\(names.environment.rawValue).inspect", topics: [topic])
        options.readsAhead = true
        let reader: any LogReader
        do throws(LogFault) { reader = try log.openReader(options) } catch { throw ToolFault(.wrongUsage, error.words) }
        defer { reader.close(by: Deadline(after: .seconds(5))) }

        var report = WhatIfReport(query)
        var changes = WhatIfStream(output)
        if query.isJSON { changes.begin(query, names) }
        var whatIf = WhatIf(query.policy)
        var decisions = FirstDecisions()
        let scan = ConsumptionScan(reader, topic: topic)
        var progress = ProgressBar.standardError()
        try scan.run(
            partitions, since: query.period.from, progress: { part, place in progress.update(part) { "\(place)" } }
        ) {
            record, clock throws(ToolFault) in
            guard record.isAskable, query.period.contains(record.requestedAt),
                decisions.isFirst(record, clock: clock)
            else { return }
            switch whatIf.ask(about: record) {
            case .notDecided: break
            case .unreadable: report.unreadable += 1
            case .found(let finding):
                report.add(finding)
                if query.isJSON, finding.isChanged { changes.tell(finding) }
            }
        }
        progress.end()
        if let words = scan.headers.tooNew { output.message("perennial consumption: \(topic): \(words)") }
        report.unreadable += scan.unreadable
        if query.isJSON {
            changes.end(report, scan)
        } else {
            for line in report.lines { output.data(line) }
        }
        return .done
    }
}

/// A decision that was withdrawn without consent is repeated when consent returns: the first one counts.
struct FirstDecisions {
    /// Requests of half a day in one partition. After its deadline a request gets no further decision.
    private static let looksAgainAt = 10_000

    private var deadlines: [[UInt8]: Int64] = [:]
    private var limit = looksAgainAt

    /// - Parameter clock: the greatest timestamp of the partition so far.
    mutating func isFirst(_ record: ConsumptionRecord, clock: Int64) -> Bool {
        guard deadlines.updateValue(record.deadline, forKey: record.id.bytes) == nil else { return false }
        if deadlines.count > limit {
            deadlines = deadlines.filter { $0.value > clock }
            limit = max(Self.looksAgainAt, 2 * deadlines.count)
        }
        return true
    }
}
