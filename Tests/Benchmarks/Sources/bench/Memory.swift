// Prepares memory for a measurement.

import Glibc
import Platform

/// More than a run with its state on disk takes. A run with a million in memory takes half as much again.
private let wantedBytes = 3 << 30

/// Touches memory and frees it, so that the system has it ready for the next run. The memory of a virtual machine comes from its
/// host, which may take back free pages. The first touch of such a page takes many times as long as of another page, so a growing
/// run would measure the host.
func prepareMemory() {
    let pageBytes = sysconf(Int32(_SC_PAGESIZE))
    let bytes = min(wantedBytes, sysconf(Int32(_SC_AVPHYS_PAGES)) * pageBytes / 2)
    guard let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
        memory != MAP_FAILED
    else {
        return printMessage("bench: cannot allocate \(bytes >> 20) MiB: the next run may measure its host")
    }
    for place in stride(from: 0, to: bytes, by: pageBytes) {
        memory.storeBytes(of: 1, toByteOffset: place, as: UInt8.self)
    }
    munmap(memory, bytes)
}
