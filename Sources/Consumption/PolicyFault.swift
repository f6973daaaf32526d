// What is wrong with a policy file, and where.

public import JSON

public struct PolicyFault: Sendable, Equatable, CustomStringConvertible {
    public let place: JSONPlace
    /// A sentence without its end.
    public let problem: String

    public var line: Int { place.line }
    public var column: Int { place.column }
    public var description: String { "line \(line), column \(column): \(problem)" }
}

/// All that is wrong, in the order of the file.
public struct PolicyFaults: Error, Equatable, CustomStringConvertible {
    /// More help nobody: most follow from the first.
    public static let limit = 50

    public let faults: [PolicyFault]

    public var description: String { faults.map(\.description).joined(separator: "\n") }
}
