// Notes which record was in process when the process crashed.

internal import CPlatform
import Glibc

/// The note of one partition, in a file that is mapped into memory. When a trap ends the process, a signal handler
/// writes there, so the next process knows the record that causes the trap again and again. Per record this costs three
/// plain stores.
///
/// `working` and `idle` apply to the calling thread: the one that works for the partition. It must call `idle` before
/// this object is released, which unmaps the file. A SIGKILL or a crash of the machine has no record as its cause, and
/// leaves no note.
public final class CrashNotes {
    private let page: UnsafeMutablePointer<perennial_crash_page>

    /// Creates the file, or reads the note of the last trap from it. A file with other contents counts as empty.
    public init(path: String) throws(SystemFailure) {
        guard let page = perennial_crash_open(path) else { throw .last("map the crash notes \(path)") }
        self.page = page
    }

    deinit { perennial_crash_close(page) }

    /// Notes that the calling thread works on this record, until the next call.
    public func working(topic: UInt32, offset: Int64) { perennial_crash_working(page, topic, offset) }

    public func idle() { perennial_crash_idle() }

    /// How often the process has trapped at exactly this record, if it is the last one at which it trapped.
    public func traps(topic: UInt32, offset: Int64) -> Int { Int(perennial_crash_traps(page, topic, offset)) }

    /// Handles the signals of traps for the life of the process. Backtraces, core dumps and the exit status stay the
    /// same. Call it in `main`, before the threads start: every later `WorkerThread` is then prepared.
    public static func install() throws(SystemFailure) {
        guard perennial_crash_install() == 0 else { throw .last("install handlers for the signals of traps") }
    }
}
