// Which record was being worked on when the process trapped.

internal import CPlatform
import Glibc

/// The note of one partition, in a file that is mapped into memory: a signal handler writes there when a trap ends the process,
/// and whoever starts next knows the record that does it again and again. What is noted for each record is three plain stores.
///
/// `working` and `idle` speak for the calling thread: the one that works for the partition. It says `idle` before this object
/// goes, which unmaps the file. A SIGKILL or the death of the machine is nobody's fault and leaves no note.
public final class CrashNotes {
    private let page: UnsafeMutablePointer<perennial_crash_page>

    /// Makes the file, or takes the note of the last trap from it. A file with another content counts as empty.
    public init(path: String) throws(SystemFailure) {
        guard let page = perennial_crash_open(path) else { throw .last("map the crash notes \(path)") }
        self.page = page
    }

    deinit { perennial_crash_close(page) }

    /// Says that the calling thread works on this record, until it says otherwise.
    public func working(topic: UInt32, offset: Int64) { perennial_crash_working(page, topic, offset) }

    public func idle() { perennial_crash_idle() }

    /// How often the process has trapped at exactly this record, if it is the last one at which it has.
    public func traps(topic: UInt32, offset: Int64) -> Int { Int(perennial_crash_traps(page, topic, offset)) }

    public func clear() { perennial_crash_clear(page) }

    /// Takes the signals of traps for the life of the process. Backtraces, core dumps and the way it ends stay as they are. Call in `main`, before the threads: a `WorkerThread` arms itself from then on.
    public static func install() throws(SystemFailure) {
        guard perennial_crash_install() == 0 else { throw .last("take the signals of traps") }
    }

    /// For threads that are no `WorkerThread`: without it an overflow of their stack leaves no note.
    public static func armThread() throws(SystemFailure) {
        guard perennial_crash_arm_thread() == 0 else { throw .last("make a stack for the signals of traps") }
    }
}
