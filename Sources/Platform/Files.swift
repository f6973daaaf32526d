// Whole small files: settings, secrets, certificates; and standard input.

internal import CPlatform
import Glibc

public enum FileFault: Error, Equatable, CustomStringConvertible {
    case unreadable(path: String, reason: String)
    case notAFile(path: String)
    case tooLarge(path: String, limitBytes: Int)

    public var description: String {
        switch self {
        case .unreadable(let path, let reason): "cannot read \(path): \(reason)"
        case .notAFile(let path): "cannot read \(path): it is not a regular file"
        case .tooLarge(let path, let limit): "cannot read \(path): it is larger than \(limit) bytes"
        }
    }
}

/// Reads a whole file. A FIFO, a device or a directory is refused rather than waited for.
public func readFile(_ path: String, limitBytes: Int = 1 << 20) throws(FileFault) -> [UInt8] {
    let descriptor = perennial_open_for_reading(path)
    guard descriptor >= 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
        throw .unreadable(path: path, reason: String(cString: strerror(errno)))
    }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .notAFile(path: path) }
    guard status.st_size <= limitBytes else { throw .tooLarge(path: path, limitBytes: limitBytes) }
    return try read(descriptor, path, limitBytes)
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
