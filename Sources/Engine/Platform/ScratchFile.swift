// Disk space for one process, which the system frees however the process ends.

import Glibc

/// A file without a name: the system deletes it when it is closed, also after a kill. For use by one thread.
public final class ScratchFile {
    /// A system call for each entry would cost more than the entry.
    private static let bufferBytes = 64 << 10

    private let directory: String
    private let descriptor: Int32
    private var buffer: [UInt8] = []
    private var written: Int64 = 0

    /// - Parameter directory: on the file system with the space.
    public init(in directory: String) throws(SystemFailure) {
        self.directory = directory
        var template = Array("\(directory)/perennial-XXXXXX".utf8CString)
        descriptor = mkostemp(&template, O_CLOEXEC)
        guard descriptor >= 0 else { throw .last("create a file in \(directory)") }
        guard unlink(template) == 0 else {
            let failure = SystemFailure.last("remove a file in \(directory)")
            close(descriptor)
            throw failure
        }
    }

    deinit { close(descriptor) }

    /// Bytes appended so far.
    public var count: Int64 { written + Int64(buffer.count) }

    public func append(_ bytes: [UInt8]) throws(SystemFailure) {
        buffer.append(contentsOf: bytes)
        if buffer.count >= Self.bufferBytes { try flush() }
    }

    /// After this, everything appended can be read.
    public func flush() throws(SystemFailure) {
        defer { buffer.removeAll(keepingCapacity: true) }
        if let failure = writeAll(buffer, to: descriptor) {
            throw SystemFailure(operation: "write to a file in \(directory)", code: failure.code)
        }
        written += Int64(buffer.count)
    }

    /// Fills the buffer from this offset on; at the end of the file the result is shorter.
    public func read(at place: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(SystemFailure) -> Int {
        var filled = 0
        while filled < buffer.count {
            let count = pread(
                descriptor, buffer.baseAddress! + filled, buffer.count - filled, off_t(place) + off_t(filled))
            if count == 0 { break }
            if count < 0 {
                if errno == EINTR { continue }
                throw .last("read a file in \(directory)")
            }
            filled += count
        }
        return filled
    }

    /// Frees the space.
    public func empty() throws(SystemFailure) {
        buffer.removeAll(keepingCapacity: true)
        guard ftruncate(descriptor, 0) == 0, lseek(descriptor, 0, SEEK_SET) == 0 else {
            throw .last("empty a file in \(directory)")
        }
        written = 0
    }
}
