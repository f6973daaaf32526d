// Whole small files: settings, secrets, certificates; and standard input.

internal import CPlatform
import Glibc

public enum FileFault: Error, Equatable, CustomStringConvertible {
    case unreadable(path: String, reason: String)
    case notAFile(path: String)
    case tooLarge(path: String, limitBytes: Int)
    /// Another user could change the contents.
    case notOwn(path: String, reason: String)

    public var description: String {
        switch self {
        case .unreadable(let path, let reason): "cannot read \(path): \(reason)"
        case .notAFile(let path): "cannot read \(path): it is not a regular file"
        case .tooLarge(let path, let limit): "cannot read \(path): it is larger than \(limit) bytes"
        case .notOwn(let path, let reason): "\(path) is not read: \(reason)"
        }
    }
}

/// Reads a whole file. A FIFO, a device or a directory is refused, because reading it might block.
public func readFile(_ path: String, limitBytes: Int = 1 << 20) throws(FileFault) -> [UInt8] {
    try readFile(path, limitBytes: limitBytes, isOwn: false)
}

/// The same for a file that decides what this process does: only its user and root may be able to change it. Otherwise
/// anyone who can place a file where a program is started could make another user's process run a program.
public func readOwnFile(_ path: String, limitBytes: Int = 1 << 20) throws(FileFault) -> [UInt8] {
    try readFile(path, limitBytes: limitBytes, isOwn: true)
}

/// Whether users other than the owner and the group may read the file.
public func isReadableByAll(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IROTH != 0
}

/// Why a user other than root and this process's user can change the file; nil: nobody else can, or
/// the file does not exist.
public func whyOthersCanChange(_ path: String) -> String? {
    var status = stat()
    return stat(path, &status) == 0 ? foreignness(of: status, path) : nil
}

private func readFile(_ path: String, limitBytes: Int, isOwn: Bool) throws(FileFault) -> [UInt8] {
    let descriptor = perennial_open_for_reading(path)
    guard descriptor >= 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
        throw .unreadable(path: path, reason: String(cString: strerror(errno)))
    }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .notAFile(path: path) }
    if isOwn, let reason = foreignness(of: status, path) { throw .notOwn(path: path, reason: reason) }
    guard status.st_size <= limitBytes else { throw .tooLarge(path: path, limitBytes: limitBytes) }
    return try read(descriptor, path, limitBytes)
}

/// Why another user can change the file; nil: nobody else can.
private func foreignness(of status: stat, _ path: String) -> String? {
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
        return
            "it belongs to user \(status.st_uid), but must belong to the user who runs this (\(geteuid())) or to root"
    }
    guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
        return "users other than its owner can write it: chmod go-w \(path)"
    }
    return nil
}

/// Reads standard input, whatever it is, to its end.
public func readStandardInput(limitBytes: Int) throws(FileFault) -> [UInt8] {
    try read(STDIN_FILENO, "standard input", limitBytes)
}

private func read(_ descriptor: Int32, _ path: String, _ limitBytes: Int) throws(FileFault) -> [UInt8] {
    // One byte more than the limit is requested: the file may have grown since its size was read (or be one of /proc).
    let most = limitBytes + 1
    // Grows as it is filled: the limits are far larger than most files.
    var bytes = [UInt8](repeating: 0, count: min(most, 64 * 1024))
    var filled = 0
    while filled < most {
        if filled == bytes.count {
            bytes.append(contentsOf: repeatElement(0, count: min(bytes.count, most - bytes.count)))
        }
        let count = bytes.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress! + filled, $0.count - filled) }
        if count == 0 { break }
        if count < 0 {
            if errno == EINTR { continue }
            throw .unreadable(path: path, reason: String(cString: strerror(errno)))
        }
        filled += count
    }
    guard filled <= limitBytes else { throw .tooLarge(path: path, limitBytes: limitBytes) }
    bytes.removeLast(bytes.count - filled)
    return bytes
}
