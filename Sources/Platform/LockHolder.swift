// Who has locked a file.

import Glibc

public var ownProcessID: Int { Int(getpid()) }

/// The process with a POSIX lock on the whole of a file or a part of it, as the system's list of locks says; nil: none, or one
/// that this process cannot see, as in another container.
///
/// The file itself is not opened to ask: to close it again would let go a lock that this process has.
public func processLocking(_ path: String) -> Int? {
    var status = stat()
    guard stat(path, &status) == 0, let list = try? readFile("/proc/locks", limitBytes: 16 << 20) else { return nil }
    // As the macros of the C library take it apart, which Swift cannot call.
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
