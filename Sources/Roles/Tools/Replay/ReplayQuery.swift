// The arguments of `replay`.

import Cluster
import CommandLine
import Configuration
import Contract
import Platform
import Runtime
import Settings

struct ReplayQuery {
    enum Verb: Equatable {
        case run(Run)
        case list
        case drop(ShadowName)
    }

    struct Run: Equatable {
        var name: ShadowName
        /// nil: all output is written.
        var from: OutputStart?
        /// Records per second, for all threads of the process together.
        var rate: Int?
        /// Continues after it has reached the ends that there were at the start.
        var follows = false
        /// Runs although the first records of the log were deleted.
        var isIncomplete = false
    }

    let verb: Verb
    /// nil: it is about every worker.
    let worker: WorkerName?
    let isJSON: Bool

    init(_ invocation: Invocation, threads: Int, now: Int64) throws(ToolFault) {
        worker = try Self.worker(invocation.operands.first)
        switch (invocation.option("name"), invocation.has("list"), invocation.option("drop")) {
        case (let name?, false, nil):
            verb = .run(try Self.run(name, invocation, threads: threads, now: now))
        case (nil, true, nil): verb = .list
        case (nil, false, let name?): verb = .drop(try Self.name(name, option: "drop"))
        default:
            throw ToolFault(
                .wrongUsage, "give one of --name NAME (runs a replay), --list, and --drop NAME (removes a replay)")
        }
        if verb != .list, worker == nil { throw ToolFault(.wrongUsage, "replay needs a worker: \(Self.workerNames)") }
        if case .run = verb {
        } else if let stray = Self.optionsOfRun.first(where: invocation.has) {
            throw ToolFault(.wrongUsage, "--\(stray) belongs to --name, which runs a replay")
        }
        let format = invocation.option("format")
        if format != nil, verb != .list { throw ToolFault(.wrongUsage, "--format belongs to --list") }
        guard format == nil || format == "text" || format == "json" else {
            throw ToolFault(.wrongUsage, "--format must be text or json, not \(quoted(format ?? ""))")
        }
        isJSON = format == "json"
    }

    private static let optionsOfRun = ["from", "rate", "follow", "incomplete"]
    private static let workerNames = WorkerName.allCases.map(\.rawValue).joined(separator: ", ")

    private static func worker(_ name: String?) throws(ToolFault) -> WorkerName? {
        guard let name else { return nil }
        guard let worker = WorkerName(rawValue: name) else {
            throw ToolFault(.wrongUsage, "there is no worker \(quoted(name)): the workers are \(workerNames)")
        }
        return worker
    }

    private static func name(_ text: String, option: String) throws(ToolFault) -> ShadowName {
        guard let name = ShadowName(text) else {
            throw ToolFault(
                .wrongUsage,
                "--\(option) takes 1 to \(ShadowName.limitBytes) letters, digits, \"_\" and \"-\", not \(quoted(text))")
        }
        return name
    }

    private static func run(
        _ name: String, _ invocation: Invocation, threads: Int, now: Int64
    ) throws(ToolFault) -> Run {
        var run = Run(name: try Self.name(name, option: "name"))
        if let text = invocation.option("from") { run.from = try OutputStart(text, now: now) }
        if let text = invocation.option("rate") {
            let least = Pace.least(threads: threads)
            guard let rate = Int(text), (least...greatestRate).contains(rate) else {
                throw ToolFault(
                    .wrongUsage, "--rate takes \(least) to \(greatestRate) records a second, not \(quoted(text))")
            }
            run.rate = rate
        }
        run.follows = invocation.has("follow")
        run.isIncomplete = invocation.has("incomplete")
        return run
    }

    /// Faster than any replay.
    private static let greatestRate = 10_000_000
}

/// Where output begins.
enum OutputStart: Equatable, CustomStringConvertible {
    /// Milliseconds since 1970, and the text: `2h` means another time whenever it is read.
    case time(Int64, text: String)
    /// By partition.
    case offsets([Int32: Int64])

    init(_ text: String, now: Int64) throws(ToolFault) {
        if let offsets = try partitionOffsets(text, option: "from") {
            self = .offsets(offsets)
        } else if let time = pointInTime(text, now: now) {
            self = .time(time, text: text)
        } else {
            throw ToolFault(
                .wrongUsage,
                "--from takes 2h, 7d, 2026-11-20, 2026-11-20T10:00:00Z or PARTITION:OFFSET[,...], not \(quoted(text))")
        }
    }

    var description: String {
        switch self {
        case .time(_, let text): text
        case .offsets(let offsets):
            offsets.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value)" }.joined(separator: ",")
        }
    }
}
