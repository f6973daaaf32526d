// The free space of a file system.

import Glibc

/// The space left for a user without special rights on the file system of `path`.
public struct FreeRoom: Sendable, Equatable {
    public var bytes: Int
    /// Number of files and directories that can still be created; nil: the file system does not count them.
    public var files: Int?

    public init(bytes: Int, files: Int? = nil) {
        self.bytes = bytes
        self.files = files
    }

    public static func at(_ path: String) throws(SystemFailure) -> FreeRoom {
        var status = statvfs()
        while statvfs(path, &status) != 0 {
            guard errno == EINTR else { throw .last("read the free space at \(path)") }
        }
        let bytes = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return FreeRoom(
            bytes: bytes.overflow ? .max : Int(clamping: bytes.partialValue),
            files: status.f_files == 0 ? nil : Int(clamping: status.f_favail))
    }
}
