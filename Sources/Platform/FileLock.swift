// One process at a time.

import Glibc

public enum FileLockFault: Error, Equatable, CustomStringConvertible {
    /// nil: its holder has not written down who it is.
    case held(path: String, by: Int?)
    case system(SystemFailure)

    public var description: String {
        switch self {
        case .held(let path, let holder):
            "\(path) is locked by \(holder.map { "process \($0)" } ?? "another process"): one process at a time works here"
        case .system(let failure): "\(failure)"
        }
    }
}

/// Holds a lock file until it is released or the process ends, however that happens. To lose this value does not release it:
/// that is said, or it is the process's end. Programs that the process starts do not hold the lock with it.
///
/// The file stays when the lock goes: whoever removed it might remove the one that somebody has just locked. Its text is the
/// process that holds the lock, or held it last.
public struct FileLock: ~Copyable, Sendable {
    private let descriptor: Int32

    public consuming func release() { close(descriptor) }

    /// Does not wait. Another lock of the same process holds it, too.
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
        // From the beginning, and the rest cut off: an earlier holder's number may be longer.
        let text = Array("\(getpid())\n".utf8)
        guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, text, text.count, 0) == text.count else {
            throw .system(.last("write \(path)"))
        }
    }

    private static func holder(_ descriptor: Int32) -> Int? {
        var text = [UInt8](repeating: 0, count: 32)
        let count = pread(descriptor, &text, text.count, 0)
        // Without the end of the line it is half a number.
        guard count > 1, text[count - 1] == UInt8(ascii: "\n") else { return nil }
        return Int(String(decoding: text[..<(count - 1)], as: UTF8.self))
    }
}
