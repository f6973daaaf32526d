// What is to be compared, and how it is to look.

import Contract
import Platform
import Settings

struct DiffQuery: Sendable, Equatable {
    /// What of its input a replay may have left: less of it was compared than anybody would call compared.
    static let defaultBehind: Int64 = 10
    static let defaultSamples = 10

    let worker: Worker
    let name: ShadowName
    let samples: Int
    let isJSON: Bool
    /// Percent.
    let behind: Int64
    let scratch: String

    /// - Parameter temporary: the directory for files that do not last, as the system has it.
    init(_ invocation: Invocation, temporary: String?) throws(ToolFault) {
        let word = invocation.operands[0]
        guard let worker = Worker(rawValue: word) else {
            let all = Worker.allCases.map(\.rawValue)
            let nearest = nearestName(to: word, among: all).map { "; the nearest is \($0)" } ?? ""
            throw ToolFault(
                .wrongUsage, "no worker is called \(quoted(word))\(nearest): the workers are \(all.joined(separator: ", "))")
        }
        self.worker = worker
        guard let text = invocation.option("name") else {
            throw ToolFault(.wrongUsage, "compare with which replay? --name NAME is that of perennial replay \(word)")
        }
        guard let name = ShadowName(text) else {
            throw ToolFault(
                .wrongUsage,
                "--name takes 1 to \(ShadowName.limitBytes) letters, digits, \"_\" and \"-\", not \(quoted(text))")
        }
        self.name = name
        samples = Int(try Self.number(invocation, "samples", Int64(Self.defaultSamples), 0...Int64(Int32.max)))
        behind = try Self.number(invocation, "behind", Self.defaultBehind, 0...100)
        guard let format = invocation.choice("format", of: ["text", "json"]) else { throw ToolFault(.wrongUsage, lines: []) }
        isJSON = format == "json"
        scratch = invocation.option("scratch") ?? temporary.flatMap { $0.isEmpty ? nil : $0 } ?? "/var/tmp"
    }

    private static func number(
        _ invocation: Invocation, _ option: String, _ standard: Int64, _ range: ClosedRange<Int64>
    ) throws(ToolFault) -> Int64 {
        guard let text = invocation.option(option) else { return standard }
        guard let number = Int64(text), range.contains(number) else {
            throw ToolFault(
                .wrongUsage,
                "--\(option) takes a whole number from \(range.lowerBound) to \(range.upperBound), not \(quoted(text))")
        }
        return number
    }
}
