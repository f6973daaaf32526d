// Where a command writes: data for programs, messages for people.

public struct Output: Sendable {
    public let data: @Sendable (String) -> Void
    public let message: @Sendable (String) -> Void

    /// Both functions get text without the last line end.
    public init(data: @escaping @Sendable (String) -> Void, message: @escaping @Sendable (String) -> Void) {
        self.data = data
        self.message = message
    }
}
