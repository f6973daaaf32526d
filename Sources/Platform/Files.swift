// Whole small files: settings, secrets, certificates; and standard input.

internal import CPlatform
import Glibc

public enum FileFault: Error, Equatable, CustomStringConvertible {
    case unreadable(path: String, reason: String)
    case notAFile(path: String)
    case tooLarge(path: String, limitBytes: Int)
    /// Somebody else may decide what it says.
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

/// Reads a whole file. A FIFO, a device or a directory is refused rather than waited for.
public func readFile(_ path: String, limitBytes: Int = 1 << 20) throws(FileFault) -> [UInt8] {
    try readFile(path, limitBytes: limitBytes, isOwn: false)
}

/// The same for a file that decides what this process does: nobody but its user and root may be able to change it. Whoever can
/// leave a file where a program is started would otherwise start programs of his own as somebody else.
public func readOwnFile(_ path: String, limitBytes: Int = 1 << 20) throws(FileFault) -> [UInt8] {
    try readFile(path, limitBytes: limitBytes, isOwn: true)
}

/// Whether users may read the file who are neither its owner nor of its group.
public func isReadableByAll(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IROTH != 0
}

/// Whether somebody else than root and the user of this process can change the file; nil: nobody can, or there is no such file.
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

/// Why somebody else can change the file; nil: nobody can.
private func foreignness(of status: stat, _ path: String) -> String? {
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
        return
            "it belongs to user \(status.st_uid), and must belong to the user who runs this (\(geteuid())) or to root"
    }
    guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
        return "others than its owner can write it: chmod go-w \(path)"
    }
    return nil
}

/// Reads what comes on standard input, whatever it is, to its end.
public func readStandardInput(limitBytes: Int) throws(FileFault) -> [UInt8] {
    try read(STDIN_FILENO, "standard input", limitBytes)
}

private func read(_ descriptor: Int32, _ path: String, _ limitBytes: Int) throws(FileFault) -> [UInt8] {
    // One byte beyond the limit is asked for: the file may have grown since its size was read (or be one of /proc).
    let most = limitBytes + 1
    // Grows as it is filled: limits are far above what most files have.
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
