// Cleans up before the test process ends: first the children, then the directories that they write to.

import CTestKit
import Glibc
import Synchronization

/// The kernel kills our children whenever this process ends. A regular exit also removes their files, even if a test
/// forgot to close something.
enum ExitCleanup {
    private struct Remains {
        var children: Set<Int32> = []
        var directories: Set<String> = []
        var isHooked = false
    }

    private static let remains = Mutex(Remains())

    static func add(child: Int32) { change { $0.children.insert(child) } }
    static func remove(child: Int32) { change { $0.children.remove(child) } }
    static func add(directory: String) { change { $0.directories.insert(directory) } }
    static func remove(directory: String) { change { $0.directories.remove(directory) } }

    private static func change(_ body: (inout Remains) -> Void) {
        remains.withLock { remains in
            if !remains.isHooked {
                remains.isHooked = true
                atexit(cleanUpAtExit)
            }
            body(&remains)
        }
    }

    fileprivate static func run() {
        let (children, directories) = remains.withLock { ($0.children, $0.directories) }
        for child in children { kill(-child, SIGKILL) }
        for child in children {
            var code: Int32 = 0
            var isSignal = false
            perennial_reap_child(child, true, &code, &isSignal)
        }
        for directory in directories { perennial_remove_tree(directory) }
    }
}

// A top-level function: C calls it on the exiting thread.
private func cleanUpAtExit() { ExitCleanup.run() }
