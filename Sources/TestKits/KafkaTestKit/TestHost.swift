// Where the programs of a test run.

/// This machine as the test sees it, or a network namespace of it, which stands for another machine.
public struct TestHost: Sendable, Equatable {
    /// At which the programs of this host are reached.
    public let address: String
    /// A program and its arguments that become another program on this host: they are followed by the path of that program and
    /// its arguments. Empty: the programs run where the test runs.
    public let entry: [String]

    public init(address: String, entry: [String]) {
        self.address = address
        self.entry = entry
    }

    /// Where the test runs.
    public static let own = TestHost(address: "127.0.0.1", entry: [])
}
