// `offsets accept-gap`: lets a worker continue after records that were deleted.

import Cluster
import CommandLine
import Configuration
import Contract
import JSON
import Kafka
import Log
import Platform
import Runtime
import Telemetry

struct AcceptGapRun {
    /// A gap, and the offset where the worker would continue.
    private struct Step {
        let acceptance: GapAcceptance
        let gap: AcceptableGap
        /// nil: the user must name the offset.
        let next: NextOffset?
    }

    private let wanted: OffsetsQuery.AcceptGap
    private let isJSON: Bool
    private let configuration: Configuration
    private let output: Output

    init(
        _ wanted: OffsetsQuery.AcceptGap, _ query: OffsetsQuery, _ configuration: Configuration, _ output: Output
    ) {
        self.wanted = wanted
        isJSON = query.isJSON
        self.configuration = configuration
        self.output = output
    }

    func run(_ access: ClusterAccess, by deadline: Deadline) throws(ToolFault) -> ExitCode {
        let steps = try steps(access, by: deadline)
        for step in steps { output.data(isJSON ? Self.json(step.gap, step.next) : Self.text(step.gap, step.next)) }
        guard !steps.isEmpty else {
            let place = wanted.partition.map { " in partition \($0)" } ?? ""
            say("\(wanted.worker.rawValue) has no gap\(place)")
            return .no
        }
        guard wanted.applies else {
            say(
                "nothing was written. Stop every process of \(wanted.worker.rawValue); then --partition P with --apply "
                    + "continues after the gap. The deleted records stay lost")
            return .done
        }
        return try apply(steps, by: deadline)
    }

    private func steps(_ access: ClusterAccess, by deadline: Deadline) throws(ToolFault) -> [Step] {
        var steps: [Step] = []
        for environment in configuration.namedEnvironments {
            let names = Names(prefix: configuration.topicPlan.prefix, environment: environment)
            let changelog = names.topic(.changelog(wanted.worker))
            // An environment without topics has no gaps.
            guard let topic = access.cluster.topics.first(where: { $0.name == changelog }) else { continue }
            let numbers = topic.partitions.map(\.id).filter { wanted.partition == nil || $0 == wanted.partition }
            let acceptance = acceptance(names)
            do throws(LogFault) {
                for gap in try acceptance.look(at: numbers.sorted(), by: deadline) {
                    steps.append(Step(acceptance: acceptance, gap: gap, next: Self.next(gap, wanted.place)))
                }
            } catch {
                throw ToolFault(.gaveUp, error.words)
            }
        }
        return steps
    }

    private func acceptance(_ names: Names) -> GapAcceptance {
        GapAcceptance(
            .init(
                worker: wanted.worker.rawValue, group: names.group(wanted.worker),
                inputs: wanted.worker.inputs.map(names.topic), changelog: names.topic(.changelog(wanted.worker)),
                deadLetters: names.topic(.deadLetters(wanted.worker)), app: "perennial/\(PerennialVersion.text)"),
            log: configuration.clientProperties.makeLog())
    }

    static func next(_ gap: AcceptableGap, _ place: OffsetsQuery.AcceptGap.Place?) -> NextOffset? {
        switch place {
        case .beginning: gap.beginning
        case .end: gap.end
        case nil: gap.isDeletion ? gap.beginning : nil
        }
    }

    private func apply(_ steps: [Step], by deadline: Deadline) throws(ToolFault) -> ExitCode {
        if Set(steps.map(\.gap.input.topic)).count > 1, configuration.namedEnvironments.count > 1 {
            throw ToolFault(.wrongUsage, "gaps in several topics: name one environment with --environment")
        }
        for step in steps {
            guard let next = step.next else {
                throw ToolFault(
                    .wrongUsage,
                    "where should \(wanted.worker.rawValue) continue in \(step.gap.input)? --to beginning reads everything that "
                        + "the topic has, --to end nothing of it")
            }
            do throws(LogFault) {
                try step.acceptance.accept(step.gap, at: next, by: deadline)
            } catch {
                if error.cause == .generation {
                    say("nothing was written: \(error.words)")
                    return .no
                }
                throw ToolFault(.gaveUp, error.words)
            }
            say("\(wanted.worker.rawValue) continues in \(step.gap.input) at offset \(next)")
        }
        return .done
    }

    private func say(_ words: String) { output.message("perennial offsets: \(words)") }

    // MARK: Output

    static func text(_ gap: AcceptableGap, _ next: NextOffset?) -> String {
        let lost = gap.lostOffsets.map { "\($0) offsets are gone" } ?? "the position is beyond the end, \(gap.end)"
        return
            "gap  \(gap.input)  \(gap.position) -> \(next.map { "\($0)" } ?? "?")  \(lost)  last record read: "
            + "\(time(gap.clock))  first record left: \(time(gap.firstTimestamp))"
    }

    private static func time(_ milliseconds: Int64?) -> String {
        milliseconds.map { rfc3339(milliseconds: $0) } ?? "none"
    }

    static func json(_ gap: AcceptableGap, _ next: NextOffset?) -> String {
        var writer = JSONWriter()
        writer.object { line in
            line.member("topic", gap.input.topic)
            line.member("partition", gap.input.partition)
            line.member("position", gap.position.value)
            line.member("beginning", gap.beginning.value)
            line.member("end", gap.end.value)
            line.member("lostOffsets", orNull: gap.lostOffsets)
            line.member("lastTimestamp", orNull: gap.clock)
            line.member("firstTimestamp", orNull: gap.firstTimestamp)
            line.member("next", orNull: next?.value)
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
