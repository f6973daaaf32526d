// How many threads can work at a time.

import Glibc

/// The processors that this process may use: fewer than the machine has, where somebody pinned it. At least 1.
public func availableProcessors() -> Int {
    var allowed = cpu_set_t()
    guard sched_getaffinity(0, MemoryLayout<cpu_set_t>.size, &allowed) == 0 else { return 1 }
    return max(1, withUnsafeBytes(of: allowed) { bytes in bytes.reduce(0) { $0 + $1.nonzeroBitCount } })
}
