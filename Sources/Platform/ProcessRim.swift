// What a process has from its parent: environment, streams, signals.

internal import CPlatform
import Glibc

/// The environment as pairs, in the order the process was given them.
public func environmentVariables() -> [(name: String, value: String)] {
    (0..<perennial_environment_count()).compactMap { index in
        let entry = String(cString: perennial_environment_entry(index))
        guard let equals = entry.firstIndex(of: "=") else { return nil }
        return (String(entry[..<equals]), String(entry[entry.index(after: equals)...]))
    }
}

/// Writes every byte, whatever the size of the pipe; gives up quietly when nobody reads any more.
public func writeAll(_ bytes: [UInt8], to descriptor: Int32) {
    var written = 0
    bytes.withUnsafeBytes { buffer in
        while written < buffer.count {
            let count = write(descriptor, buffer.baseAddress! + written, buffer.count - written)
            if count < 0 {
                if errno == EINTR { continue }
                return
            }
            written += count
        }
    }
}

/// Data goes to standard output.
public func printData(_ text: String) { writeAll(Array((text + "\n").utf8), to: 1) }

/// Words for people go to standard error.
public func printMessage(_ text: String) { writeAll(Array((text + "\n").utf8), to: 2) }

public enum Signal: Int32, Sendable {
    case interrupt = 2
    case terminate = 15
    case hangUp = 1
}

public enum Signals {
    /// Call first thing in `main`, before any thread or library call: threads inherit the mask.
    public static func blockAll() {
        perennial_line_buffer_standard_streams()
        perennial_block_signals()
    }

    /// For programs without anything to drain: the first SIGINT or SIGTERM ends the process at once with this code.
    ///
    /// Takes the place of `wait`, which then nobody may call.
    public static func endProcess(with code: Int32) {
        WorkerThread.start("signals") {
            while true {
                let signal = wait(for: .seconds(3600))
                if signal == .interrupt || signal == .terminate { _exit(code) }
            }
        }
    }

    /// Waits for a signal that `blockAll` holds back. nil when none came in time. One thread of the process calls this.
    public static func wait(for duration: Duration) -> Signal? {
        Signal(rawValue: perennial_wait_for_signal(Int64(duration.timeoutMilliseconds)))
    }
}
