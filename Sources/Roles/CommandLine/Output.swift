// Where a command writes: data for programs, messages for people.

package struct Output: Sendable {
    package let data: @Sendable (String) -> Void
    package let message: @Sendable (String) -> Void

    /// Both functions get text without the last line end.
    package init(data: @escaping @Sendable (String) -> Void, message: @escaping @Sendable (String) -> Void) {
        self.data = data
        self.message = message
    }
}
