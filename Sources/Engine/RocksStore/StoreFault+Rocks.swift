// The meaning of RocksDB's messages. Its C interface has no error codes: the text begins with the kind of the error.

internal import CRocksDB
internal import Store

extension StoreFault {
    /// Kinds of errors that do not come from bytes in files.
    private static let passing = [
        "IO error", "Busy", "Resource busy", "Result incomplete", "Shutdown in progress", "Operation timed out",
        "Operation aborted", "Operation expired", "Operation failed",
    ]

    /// - Parameter words: RocksDB's message, such as "IO error: No space left on device: While appending to file: …".
    init(_ operation: String, path: String, rocks words: String) {
        let text = "\(operation) \(path): \(words)"
        guard Self.passing.contains(where: { words.hasPrefix($0) }) else {
            // The remaining messages include an unknown format: wiping and restoring helps there too. The message gives no
            // advice, because only who has the log knows whether it can restore the store.
            self.init(.corrupt, text)
            return
        }
        // The first message is about a lock of this process, the second about one of another process.
        if words.contains("lock hold by current process") || words.contains("While lock file") {
            self.init(.locked, "\(path) is already open, in this or another process (\(words))")
        } else if words.contains("No such file or directory") {
            // Directories are created before: a file is missing to which others refer.
            self.init(.corrupt, text)
        } else {
            self.init(.system, "\(text). \(Self.advice(for: words))")
        }
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
