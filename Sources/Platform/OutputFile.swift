// Files that a tool writes line by line.

import Glibc

public struct OutputFault: Error, Equatable, CustomStringConvertible {
    public let path: String
    public let reason: String

    public var description: String { "cannot write \(path): \(reason)" }
}

/// A file that is written from its beginning; what it held before is gone. One thread.
///
/// Lines are gathered and handed over by `flush`, or when there are many: a system call for each costs more than the line.
public final class OutputFile {
    private let path: String
    private let descriptor: Int32
    private var buffer: [UInt8] = []

    /// What one write of a pipe or file takes well.
    private static let bufferBytes = 64 << 10

    public init(path: String) throws(OutputFault) {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw OutputFault(path: path, reason: String(cString: strerror(errno))) }
    }

    deinit { close(descriptor) }

    /// `line` is without its end.
    public func append(line: [UInt8]) throws(OutputFault) {
        buffer += line
        buffer.append(UInt8(ascii: "\n"))
        if buffer.count >= Self.bufferBytes { try flush() }
    }

    /// Call before the end: what is not handed over then is lost.
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

    /// The same, put into its place when it is whole: who waits for the file may read it at once.
    public static func replace(_ path: String, with bytes: [UInt8]) throws(OutputFault) {
        let part = path + ".part"
        try write(bytes, to: part)
        guard rename(part, path) == 0 else { throw OutputFault(path: path, reason: String(cString: strerror(errno))) }
    }
}

/// Makes a directory, unless it is there. Its parent has to be.
public func makeDirectory(_ path: String) throws(OutputFault) {
    var status = stat()
    if mkdir(path, 0o755) == 0 || (errno == EEXIST && stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR) {
        return
    }
    throw OutputFault(path: path, reason: String(cString: strerror(errno)))
}
