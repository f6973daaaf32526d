// Faults of the file system, with what to do.

package import Platform

extension StoreFault {
    package init(_ operation: String, path: String, _ failure: SystemFailure) {
        self.init(.system, "\(operation) \(path): \(failure.reason). \(Self.advice(for: failure.reason))")
    }

    package static let makeRoom = "Free space on the disk: nothing is lost, the log has everything"

    package static func advice(for words: String) -> String {
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
