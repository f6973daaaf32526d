// Finds the process that has locked a file.

import Glibc

public var ownProcessID: Int { Int(getpid()) }

/// The process with a POSIX lock on any part of the file, according to the system's list of locks; nil: no process
/// has one, or this process cannot see it, as in another container.
///
/// The file itself is not opened for this: closing it would release a lock that this process holds.
public func processLocking(_ path: String) -> Int? {
    var status = stat()
    guard stat(path, &status) == 0, let list = try? readFile("/proc/locks", limitBytes: 16 << 20) else { return nil }
    // Decoded as by the macros of the C library, which Swift cannot call.
    let device = UInt64(status.st_dev)
    let major = (device >> 8) & 0xfff | (device >> 32) & ~0xfff
    let minor = device & 0xff | (device >> 12) & ~0xff
    for line in String(decoding: list, as: UTF8.self).split(separator: "\n") {
        // "1: POSIX  ADVISORY  WRITE 4711 fe:00:16280394 0 EOF"
        let words = line.split(separator: " ")
        guard words.count >= 6, words[1] == "POSIX", let process = Int(words[4]), process > 0 else { continue }
        let place = words[5].split(separator: ":")
        guard place.count == 3, UInt64(place[0], radix: 16) == major, UInt64(place[1], radix: 16) == minor,
            UInt64(place[2]) == UInt64(status.st_ino)
        else { continue }
        return process
    }
    return nil
}
