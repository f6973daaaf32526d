import Glibc
import KafkaTestKit
import Platform

/// A separate file system, small enough to be filled.
struct SmallDisk {
    private let scratch: ScratchDirectory
    private let megabytes: Int
    var path: String { scratch.path }

    static var canBeMounted: Bool {
        guard let disk = try? SmallDisk(megabytes: 1) else { return false }
        disk.unmount()
        return true
    }

    init(megabytes: Int) throws {
        scratch = try ScratchDirectory("small-disk")
        self.megabytes = megabytes
        guard mount("tmpfs", scratch.path, "tmpfs", 0, "size=\(megabytes)m") == 0 else {
            throw SystemFailure.last("mount \(scratch.path)")
        }
    }

    /// Even if one of its files is still open.
    func unmount() { _ = umount2(path, Int32(MNT_DETACH)) }

    /// Fills it to the last byte.
    func fill() throws {
        let file = open("\(path)/fill", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw SystemFailure.last("fill \(path)") }
        defer { close(file) }
        let block = [UInt8](repeating: 0, count: 1 << 20)
        var size = block.count
        while size > 0 { if write(file, block, size) <= 0 { size /= 2 } }
    }

    /// The file is truncated first: a process that is just starting may still have it open, and would keep its blocks.
    /// The disk becomes twice as large, too: the files of a store may have filled more than half of it.
    func makeRoom() throws {
        truncate("\(path)/fill", 0)
        unlink("\(path)/fill")
        guard mount("tmpfs", path, "tmpfs", UInt(MS_REMOUNT), "size=\(2 * megabytes)m") == 0 else {
            throw SystemFailure.last("mount \(path) again")
        }
    }
}
