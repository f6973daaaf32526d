// Where a setting comes from, for the few places to which it matters.

internal import Settings

extension Configuration {
    /// The setting was set: its value is not the default.
    public func isGiven(_ key: String) -> Bool { rows.contains { $0.key == key && $0.origin != .builtIn } }

    /// It was set on the command line, and so applies to this process alone.
    public func isFlag(_ key: String) -> Bool {
        rows.contains { row in
            if row.key == key, case .flag = row.origin { true } else { false }
        }
    }
}
