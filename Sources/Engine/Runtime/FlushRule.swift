// How much of the changelog a restore reads again after a kill.

internal import Log
internal import Platform
internal import Store

/// A store keeps what was written in its write buffers until one is full, and a kill loses them: the restore reads the
/// changelog from where the files end. Buffers limit this by the bytes of the state. A key that changes with every
/// commit fills them slowly, though its changelog grows fast. So a store is also flushed when its files are too far
/// behind.
public struct FlushRule: Sendable {
    /// Offsets of the changelog that the files of a store may lack, and that a store may lack itself.
    public var offsets: Int64 = 20_000
    /// How much older than the store its files may be. A restore wipes a store that is older than six days, because the
    /// changelog may have forgotten deletions since.
    public var age: Duration = .seconds(3600)

    public init() {}

    /// - Parameters:
    ///   - lasting: the note of the files; nil: they are empty, and the restore would begin at the beginning.
    ///   - stored: the note of the store.
    func isDue(_ lasting: Note?, _ stored: Note) -> Bool {
        if stored.changelog.value - (lasting?.changelog.value ?? 0) >= offsets { return true }
        guard let lasting else { return false }
        return stored.writtenAt - lasting.writtenAt >= age.wholeMilliseconds
    }
}

extension PartitionTask {
    /// Call this after the store was written. It does not wait for the disk.
    func flushStore(_ rule: FlushRule) throws(StoreFault) {
        let lasting = try store.lastingNote().flatMap { Note(decoding: $0) }
        if rule.isDue(lasting, note) { try store.beginFlush() }
    }
}
