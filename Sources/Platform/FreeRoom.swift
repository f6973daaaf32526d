// How much a file system still takes.

import Glibc

/// What is left for a user without special rights, where `path` lies.
public struct FreeRoom: Sendable, Equatable {
    public var bytes: Int
    /// Files and directories that can still be made; nil: the file system does not count them.
    public var files: Int?

    public init(bytes: Int, files: Int? = nil) {
        self.bytes = bytes
        self.files = files
    }

    public static func at(_ path: String) throws(SystemFailure) -> FreeRoom {
        var status = statvfs()
        while statvfs(path, &status) != 0 {
            guard errno == EINTR else { throw .last("look for room at \(path)") }
        }
        let bytes = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return FreeRoom(
            bytes: bytes.overflow ? .max : Int(clamping: bytes.partialValue),
            files: status.f_files == 0 ? nil : Int(clamping: status.f_favail))
    }
}
