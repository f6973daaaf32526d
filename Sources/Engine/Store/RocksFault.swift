// The meaning of RocksDB's messages. Its C interface has no error codes: the text begins with the kind of the error.

internal import CRocksDB
package import Platform

extension StoreFault {
    /// - Parameter words: RocksDB's message, such as "IO error: No space left on device: While appending to file: …".
    init(_ operation: String, path: String, rocks words: String) {
        let text = "\(operation) \(path): \(words)"
        guard words.hasPrefix("IO error") || words.hasPrefix("Busy") else {
            // The remaining messages include an unknown format: wiping and restoring helps there too.
            self.init(.corrupt, "\(text). Delete the store: it is restored from the log")
            return
        }
        // The first message is about a lock of this process, the second about one of another process.
        if words.contains("lock hold by current process") || words.contains("While lock file") {
            self.init(.locked, "\(path) is already open, in this or another process (\(words))")
        } else if words.contains("No such file or directory") {
            // Directories are created before: a file is missing to which others refer.
            self.init(.corrupt, "\(text). Delete the store: it is restored from the log")
        } else {
            self.init(.system, "\(text). \(Self.advice(for: words))")
        }
    }

    /// For calls of the system instead of RocksDB: if a file is missing then, it is not a file of a store.
    package init(_ operation: String, path: String, _ failure: SystemFailure) {
        self.init(.system, "\(operation) \(path): \(failure.reason). \(Self.advice(for: failure.reason))")
    }

    static let makeRoom = "Free space on the disk: nothing is lost, the log has everything"

    private static func advice(for words: String) -> String {
        if words.contains("No space left") || words.contains("quota") {
            return makeRoom
        }
        if words.contains("ermission") || words.contains("not permitted") || words.contains("Read-only") {
            return "Give this user permission to write there, or set state.directory to another place"
        }
        if words.contains("not a directory") || words.contains("Not a directory") || words.contains("File exists") {
            return "There is a file where a directory is needed: move it away, or set state.directory to another place"
        }
        if words.contains("No such file") { return "It cannot be created there: set state.directory to another place" }
        if words.contains("Too many open files") { return "Raise the limit of open files (ulimit -n)" }
        return "Check the disk: nothing is lost, the log has everything"
    }
}

/// Calls a function of RocksDB, and throws the error that it returns in its last argument.
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
