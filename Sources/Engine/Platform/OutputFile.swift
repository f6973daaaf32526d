// Files that a tool writes line by line.

import Glibc

public struct OutputFault: Error, Equatable, CustomStringConvertible {
    public let path: String
    public let reason: String

    public var description: String { "cannot write \(path): \(reason)" }
}

/// A file that is written from its beginning; its previous contents are deleted. For use by one thread.
///
/// Lines are collected and written by `flush`, or when there are many: a system call for each would cost more than the
/// line.
public final class OutputFile {
    private let path: String
    private let descriptor: Int32
    private var buffer: [UInt8] = []

    /// A good size of one write to a pipe or file.
    private static let bufferBytes = 64 << 10

    public init(path: String) throws(OutputFault) {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw OutputFault(path: path, reason: String(cString: strerror(errno))) }
    }

    deinit { close(descriptor) }

    /// `line` has no line end.
    public func append(line: [UInt8]) throws(OutputFault) {
        buffer += line
        buffer.append(UInt8(ascii: "\n"))
        if buffer.count >= Self.bufferBytes { try flush() }
    }

    /// Call this before the end: lines that are not written then are lost.
    public func flush() throws(OutputFault) {
        defer { buffer.removeAll(keepingCapacity: true) }
        if let failure = writeAll(buffer, to: descriptor) { throw OutputFault(path: path, reason: failure.reason) }
    }

    /// Writes a whole file.
    public static func write(_ bytes: [UInt8], to path: String) throws(OutputFault) {
        let file = try OutputFile(path: path)
        file.buffer = bytes
        try file.flush()
    }

    /// The same, but moved to its path when it is complete: a process that waits for the file may read it at once.
    public static func replace(_ path: String, with bytes: [UInt8]) throws(OutputFault) {
        let part = path + ".part"
        try write(bytes, to: part)
        guard rename(part, path) == 0 else { throw OutputFault(path: path, reason: String(cString: strerror(errno))) }
    }
}

/// Creates a directory, unless it exists. Its parent must exist.
public func makeDirectory(_ path: String) throws(OutputFault) {
    var status = stat()
    if mkdir(path, 0o755) == 0 || (errno == EEXIST && stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR) {
        return
    }
    throw OutputFault(path: path, reason: String(cString: strerror(errno)))
}
