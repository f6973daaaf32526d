// What is wrong with a policy file, and where.

public import JSON

public struct PolicyFault: Sendable, Equatable, CustomStringConvertible {
    public let place: JSONPlace
    /// A sentence without its final period.
    public let problem: String

    public var line: Int { place.line }
    public var column: Int { place.column }
    public var description: String { "line \(line), column \(column): \(problem)" }
}

/// All faults, in the order of the file.
public struct PolicyFaults: Error, Equatable, CustomStringConvertible {
    /// More faults do not help: most of them follow from the first ones.
    public static let limit = 50

    public let faults: [PolicyFault]

    public var description: String { faults.map(\.description).joined(separator: "\n") }
}
