// The commands this version has. A new one is a value here; names not listed here are told to be to come.

extension Program {
    /// `librdkafka` tells the version of the library, `refusal` which of its properties may not be set, and why.
    public static func standard(
        librdkafka: @escaping @Sendable () -> LibraryVersion? = { nil },
        refusal: @escaping @Sendable (_ property: String) -> String? = { _ in nil }
    ) -> Program {
        Program(commands: [.help, .version(librdkafka: librdkafka)], refusal: refusal)
    }
}
