// The environment, streams and signals of the process.

internal import CPlatform
import Glibc

/// The environment as pairs, in the order in which the process got it.
public func environmentVariables() -> [(name: String, value: String)] {
    (0..<perennial_environment_count()).compactMap { index in
        let entry = String(cString: perennial_environment_entry(index))
        guard let equals = entry.firstIndex(of: "=") else { return nil }
        return (String(entry[..<equals]), String(entry[entry.index(after: equals)...]))
    }
}

/// Writes every byte, whatever the size of the pipe. nil: all bytes are written, or nothing reads them any more, which
/// is the reader's decision; otherwise why the rest is lost.
///
/// If the descriptor does not block (another process that shares the terminal or pipe may have set that for all), this
/// waits for it. After `stallLimit` without progress the reader counts as dead: a logger must not block its process
/// forever.
@discardableResult
public func writeAll(
    _ bytes: [UInt8], to descriptor: Int32, stallLimit: Duration = .seconds(10)
) -> SystemFailure? {
    var written = 0
    return bytes.withUnsafeBytes { buffer in
        while written < buffer.count {
            let count = write(descriptor, buffer.baseAddress! + written, buffer.count - written)
            if count >= 0 {
                written += count
            } else if errno == EAGAIN {
                guard waitForRoom(in: descriptor, until: Deadline(after: stallLimit)) else {
                    return SystemFailure(operation: "write", code: ETIMEDOUT)
                }
            } else if errno != EINTR {
                let failure = SystemFailure.last("write")
                // A closed terminal returns the same error as a broken disk.
                let isReadersWill = failure.code == EPIPE || failure.code == EIO && isAbandoned(descriptor)
                return isReadersWill ? nil : failure
            }
        }
        return nil
    }
}

/// false: the deadline passed first. An error of the descriptor shows at the next `write`.
private func waitForRoom(in descriptor: Int32, until deadline: Deadline) -> Bool {
    var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    while true {
        let count = poll(&wanted, 1, deadline.remaining.timeoutMilliseconds)
        if count > 0 || (count < 0 && errno != EINTR) { return true }
        if deadline.hasPassed { return false }
    }
}

/// Whether nothing will ever read what is written there: a pipe without a reader, or a closed terminal.
public func isAbandoned(_ descriptor: Int32) -> Bool {
    var asked = pollfd(fd: descriptor, events: 0, revents: 0)
    return poll(&asked, 1, 0) == 1 && asked.revents & Int16(POLLERR | POLLHUP) != 0
}

/// Writes data to standard output. Returns why it is lost, as `writeAll` does.
@discardableResult
public func printData(_ text: String) -> SystemFailure? { writeAll(Array((text + "\n").utf8), to: 1) }

/// Writes messages for people to standard error.
public func printMessage(_ text: String) { writeAll(Array((text + "\n").utf8), to: 2) }

public enum Signal: Int32, Sendable {
    case interrupt = 2
    case terminate = 15
    case hangUp = 1
}

public enum Signals {
    /// Blocks SIGINT, SIGTERM and SIGHUP for `wait`, and ignores SIGPIPE. Call this first in `main`, before any thread
    /// or library call: threads inherit the mask.
    public static func holdBack() {
        perennial_line_buffer_standard_streams()
        perennial_hold_back_signals()
    }

    /// Whether the parent started this process to outlive its terminal, as `nohup` does. `wait` returns the signal
    /// anyway.
    public static var hangUpIsIgnored: Bool { perennial_hang_up_is_ignored() }

    /// For programs without anything to drain: the first SIGINT or SIGTERM ends the process at once with this code.
    ///
    /// Replaces `wait`, which must then not be called.
    public static func endProcessAtFirst(with code: ExitCode, saying words: String) {
        WorkerThread.start("signals") {
            while wait(for: .seconds(3600)) == nil {}
            printMessage(words)
            endProcess(code)
        }
    }

    /// Waits for a signal that `holdBack` blocks. nil if none came in time. Only one thread of the process may call
    /// this.
    public static func wait(for duration: Duration) -> Signal? {
        Signal(rawValue: perennial_wait_for_signal(Int64(duration.timeoutMilliseconds)))
    }
}

/// For a process that holds keys: only its user can read the files that it writes.
public func keepFilesToOneself() { umask(0o077) }

/// For a process that holds keys: a crash writes none of its memory to a disk.
public func keepMemoryToOneself() {
    var none = rlimit(rlim_cur: 0, rlim_max: 0)
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
}
