// What RocksDB's messages mean. Its C face has no codes: the kind of an error is the beginning of its text.

internal import CRocksDB
package import Platform

extension StoreFault {
    /// - Parameter words: RocksDB's, such as "IO error: No space left on device: While appending to file: …".
    init(_ operation: String, path: String, rocks words: String) {
        let text = "\(operation) \(path): \(words)"
        guard words.hasPrefix("IO error") || words.hasPrefix("Busy") else {
            // Among what remains is a format that this RocksDB does not know: to wipe and restore helps there too.
            self.init(.corrupt, "\(text). Wipe it: the log restores it")
            return
        }
        // The first is said of a lock of this process, the second of another's.
        if words.contains("lock hold by current process") || words.contains("While lock file") {
            self.init(.locked, "\(path) is open already, here or in another process (\(words))")
        } else if words.contains("No such file or directory") {
            // Directories are made before: a file is missing that others point to.
            self.init(.corrupt, "\(text). Wipe it: the log restores it")
        } else {
            self.init(.system, "\(text). \(Self.advice(for: words))")
        }
    }

    /// Of what is asked of the system and not of RocksDB: files that are missing then are no store's.
    package init(_ operation: String, path: String, _ failure: SystemFailure) {
        self.init(.system, "\(operation) \(path): \(failure.reason). \(Self.advice(for: failure.reason))")
    }

    static let makeRoom = "Make room on the disk: nothing is lost, the log has everything"

    private static func advice(for words: String) -> String {
        if words.contains("No space left") || words.contains("quota") {
            return makeRoom
        }
        if words.contains("ermission") || words.contains("not permitted") || words.contains("Read-only") {
            return "Give this user the right to write there, or set state.directory to another place"
        }
        if words.contains("not a directory") || words.contains("Not a directory") || words.contains("File exists") {
            return "A file is in the place of a directory: move it away, or set state.directory to another place"
        }
        if words.contains("No such file") { return "It cannot be made there: set state.directory to another place" }
        if words.contains("Too many open files") { return "Raise the limit of open files (ulimit -n)" }
        return "Look after the disk: nothing is lost, the log has everything"
    }
}

/// Calls a function of RocksDB, and throws what it says in its last argument.
@inline(__always)
func rocks<Result>(
    _ operation: StaticString, _ path: String,
    _ call: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
) throws(StoreFault) -> Result {
    var words: UnsafeMutablePointer<CChar>?
    let result = call(&words)
    guard let words else { return result }
    defer { rocksdb_free(words) }
    throw StoreFault("\(operation)", path: path, rocks: String(cString: words))
}
