// A lock file, so that only one process works at a time.

import Glibc

public enum FileLockFault: Error, Equatable, CustomStringConvertible {
    /// nil: the holder has not written its process id.
    case held(path: String, by: Int?)
    case system(SystemFailure)

    public var description: String {
        switch self {
        case .held(let path, let holder):
            "\(path) is locked by \(holder.map { "process \($0)" } ?? "another process"): only one process may work "
                + "here"
        case .system(let failure): "\(failure)"
        }
    }
}

/// Holds a lock file until it is released or the process ends in any way. Discarding this value does not release the
/// lock: only `release` or the end of the process does. Child programs do not hold the lock.
///
/// The file stays when the lock is released: deleting it might delete a file that another process has just locked. It
/// contains the id of the process that holds the lock, or held it last.
public struct FileLock: ~Copyable, Sendable {
    private let descriptor: Int32

    public consuming func release() { close(descriptor) }

    /// Does not wait. It also fails if this process already holds the lock.
    public static func take(_ path: String) throws(FileLockFault) -> FileLock {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw .system(.last("open \(path)")) }
        do throws(FileLockFault) {
            try lock(descriptor, path)
        } catch {
            close(descriptor)
            throw error
        }
        return FileLock(descriptor: descriptor)
    }

    private static func lock(_ descriptor: Int32, _ path: String) throws(FileLockFault) {
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { throw .held(path: path, by: holder(descriptor)) }
            guard errno == EINTR else { throw .system(.last("lock \(path)")) }
        }
        // Written from the beginning and then truncated: an earlier holder's number may be longer.
        let text = Array("\(getpid())\n".utf8)
        guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, text, text.count, 0) == text.count else {
            throw .system(.last("write \(path)"))
        }
    }

    private static func holder(_ descriptor: Int32) -> Int? {
        var text = [UInt8](repeating: 0, count: 32)
        let count = pread(descriptor, &text, text.count, 0)
        // Without the end of the line it is only a part of the number.
        guard count > 1, text[count - 1] == UInt8(ascii: "\n") else { return nil }
        return Int(String(decoding: text[..<(count - 1)], as: UTF8.self))
    }
}
