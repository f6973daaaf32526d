// The commands this version has. A new one is a value here; names not listed here are told to be to come.

extension Program {
    public static let standard = Program(
        commands: [
            .ingest,
            .api,
            .clock,
            .entitlements,
            .churn,
            .consumption,
            .replay,
            .promote,
            .diff,
            .offsets,
            .topics,
            .deadLetters,
            .inspect,
            .usage,
            .verify,
            .check,
            .simulate,
            .demo,
            .help,
            .version(),
        ])
}
