// Where a setting comes from, for the few to whom it makes a difference.

internal import Settings

extension Configuration {
    /// Somebody has set it: it is not the default.
    public func isGiven(_ key: String) -> Bool { rows.contains { $0.key == key && $0.origin != .builtIn } }

    /// It was given on the command line, and so is meant for this process alone.
    public func isFlag(_ key: String) -> Bool {
        rows.contains { row in
            if row.key == key, case .flag = row.origin { true } else { false }
        }
    }
}
