// Detects whether a file has changed since it was read.

import Glibc

/// Attributes that change when a file is written or replaced (also behind a symbolic link, as Kubernetes does).
///
/// Two writes of the same length within one tick of the file system's clock (some milliseconds) look alike.
public struct FileStamp: Sendable, Equatable {
    private let device: UInt
    private let inode: UInt
    private let size: Int
    private let seconds: Int
    private let nanoseconds: Int

    /// nil: the file does not exist, or this user may not look it up.
    public init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        device = UInt(status.st_dev)
        inode = UInt(status.st_ino)
        size = Int(status.st_size)
        seconds = Int(status.st_mtim.tv_sec)
        nanoseconds = Int(status.st_mtim.tv_nsec)
    }
}
