// What to compare, and how to print it.

import Cluster
import CommandLine
import Contract
import Platform
import Settings

struct DiffQuery: Sendable, Equatable {
    static let defaultSamples = 10

    let worker: WorkerName
    let name: ShadowName
    let samples: Int
    let isJSON: Bool
    /// Also compares a replay that has not reached its end.
    let takesUnfinished: Bool
    let scratch: String

    /// - Parameter temporary: the system's directory for temporary files.
    init(_ invocation: Invocation, temporary: String?) throws(ToolFault) {
        let word = invocation.operands[0]
        guard let worker = WorkerName(rawValue: word) else {
            let all = WorkerName.allCases.map(\.rawValue)
            let nearest = nearestName(to: word, among: all).map { "; the nearest is \($0)" } ?? ""
            throw ToolFault(
                .wrongUsage,
                "there is no worker \(quoted(word))\(nearest): the workers are \(all.joined(separator: ", "))")
        }
        self.worker = worker
        guard let text = invocation.option("name") else {
            throw ToolFault(.wrongUsage, "name the replay with --name NAME, as in perennial replay \(word) --name NAME")
        }
        guard let name = ShadowName(text) else {
            throw ToolFault(
                .wrongUsage,
                "--name takes 1 to \(ShadowName.limitBytes) letters, digits, \"_\" and \"-\", not \(quoted(text))")
        }
        self.name = name
        let count = invocation.option("samples") ?? "\(Self.defaultSamples)"
        guard let samples = Int32(count), samples >= 0 else {
            throw ToolFault(.wrongUsage, "--samples takes a whole number from 0, not \(quoted(count))")
        }
        self.samples = Int(samples)
        takesUnfinished = invocation.has("unfinished")
        guard let format = invocation.choice("format", of: ["text", "json"]) else {
            throw ToolFault(.wrongUsage, lines: [])
        }
        isJSON = format == "json"
        scratch = invocation.option("scratch") ?? temporary.flatMap { $0.isEmpty ? nil : $0 } ?? "/var/tmp"
    }
}
