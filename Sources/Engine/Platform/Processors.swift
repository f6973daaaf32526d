// The number of threads that can run at the same time.

import Glibc

/// The number of processors that this process may use: fewer than the machine has if the process is pinned. At least 1.
public func availableProcessors() -> Int {
    var allowed = cpu_set_t()
    guard sched_getaffinity(0, MemoryLayout<cpu_set_t>.size, &allowed) == 0 else { return 1 }
    return max(1, withUnsafeBytes(of: allowed) { bytes in bytes.reduce(0) { $0 + $1.nonzeroBitCount } })
}
