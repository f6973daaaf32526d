// Reads files and texts of any length line by line.

internal import CPlatform
internal import Glibc

/// Reads lines without their line ends. Memory grows with the longest line, not with the file.
public struct LineReader: ~Copyable {
    public enum Line: Sendable, Equatable {
        case bytes([UInt8])
        /// The line is longer than the limit; its contents are skipped.
        case tooLong
    }

    private static let pieceBytes = 64 * 1024

    /// nil: the buffer holds all of the text.
    private let descriptor: Int32?
    private let path: String
    private let limitLineBytes: Int
    private let totalBytes: Int
    private var buffer: [UInt8]
    private var place = 0
    private var isAtEnd: Bool
    private var passedBytes = 0

    /// A FIFO, a device or a directory is refused, because reading it might block.
    public init(path: String, limitLineBytes: Int) throws(FileFault) {
        let descriptor = perennial_open_for_reading(path)
        guard descriptor >= 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw .notAFile(path: path)
        }
        self.descriptor = descriptor
        self.path = path
        self.limitLineBytes = limitLineBytes
        totalBytes = Int(status.st_size)
        buffer = []
        isAtEnd = false
    }

    public init(text: [UInt8], limitLineBytes: Int) {
        descriptor = nil
        path = ""
        self.limitLineBytes = limitLineBytes
        totalBytes = text.count
        buffer = text
        isAtEnd = true
    }

    deinit {
        if let descriptor { close(descriptor) }
    }

    /// The share of the bytes that has been read, 0 to 1.
    public var share: Double { totalBytes == 0 ? 1 : min(1, Double(passedBytes) / Double(totalBytes)) }

    /// nil at the end. A line end at the very end begins no further line.
    public mutating func next() throws(FileFault) -> Line? {
        var searched = place
        var isTooLong = false
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                return line(upTo: end, next: end + 1, isTooLong: isTooLong)
            }
            guard !isAtEnd else {
                return place < buffer.count || isTooLong
                    ? line(upTo: buffer.count, next: buffer.count, isTooLong: isTooLong) : nil
            }
            if buffer.count - place > limitLineBytes {
                isTooLong = true
                passedBytes += buffer.count - place
                place = buffer.count
            }
            buffer.removeFirst(place)
            place = 0
            searched = buffer.count
            try fill()
        }
    }

    private mutating func line(upTo end: Int, next: Int, isTooLong: Bool) -> Line {
        defer {
            passedBytes += next - place
            place = next
        }
        return isTooLong || end - place > limitLineBytes ? .tooLong : .bytes(Array(buffer[place..<end]))
    }

    private mutating func fill() throws(FileFault) {
        guard let descriptor else { return }
        let start = buffer.count
        buffer.append(contentsOf: repeatElement(0, count: Self.pieceBytes))
        while true {
            let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress! + start, Self.pieceBytes) }
            if count < 0, errno == EINTR { continue }
            let reason = errno
            buffer.removeLast(Self.pieceBytes - max(count, 0))
            guard count >= 0 else { throw .unreadable(path: path, reason: String(cString: strerror(reason))) }
            isAtEnd = count == 0
            return
        }
    }
}
