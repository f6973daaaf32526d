// Where in the log the state of a partition stands: kept in the store with every write, and in the changelog with every commit.

internal import Log
internal import Store

/// How far a partition has been dealt with.
struct Note: Equatable {
    /// The greatest format of the values.
    var format: UInt8
    /// Grows when the state of a replay takes the place of this one; a store of another epoch is of no use.
    var epoch: UInt32 = 0
    /// The replay whose state is about to take the place of this one, while that is under way: what is there is a mixture, and nobody
    /// may work on it.
    var promotion: String?
    /// The largest timestamp of the event topic's records; before the first one the least there is.
    var clock = Int64.min
    /// What the record at the event topic's position has already put out: timers that it made fire, when a commit came between
    /// them.
    var emitted: UInt32 = 0
    /// By the topic's name: the next record to read.
    var positions: [String: NextOffset] = [:]
    /// Which life of the changelog this belongs to: a number by chance, made when its first note was. Topics that are made anew
    /// begin another life. nil: written by a build that knew none.
    var life: UInt64?
    /// Of the state that belongs to these positions; in the store, of what is in there. nil: not known.
    var sum: StateSum?
    /// Of the store alone: everything of the changelog before it is in there.
    var changelog = NextOffset(0)
    /// Of the store alone: when it was written, in milliseconds since 1970 by the host's clock.
    var writtenAt: Int64 = 0
    /// Of the store alone: from there on the changelog has a note of this life. nil: not known.
    var noteOffset: NextOffset?

    init(format: UInt8) { self.format = format }

    /// A build reads its own version and the one before, which knew neither lives nor sums. Only the notes of a promotion under way
    /// are of another version, so that a build that knows none of it does not work on them.
    private static let version: UInt8 = 2
    private static let versionOfPromotion: UInt8 = 3
    private static let oldestVersion: UInt8 = 1

    var encoded: [UInt8] {
        var bytes: [UInt8] = [promotion == nil ? Self.version : Self.versionOfPromotion, format]
        bytes.append(littleEndian: epoch)
        bytes.append(littleEndian: clock)
        bytes.append(littleEndian: emitted)
        bytes.append(littleEndian: changelog.value)
        bytes.append(littleEndian: writtenAt)
        bytes.append(littleEndian: UInt16(positions.count))
        for (topic, next) in positions.sorted(by: { $0.key < $1.key }) {
            bytes.append(littleEndian: UInt16(topic.utf8.count))
            bytes.append(contentsOf: topic.utf8)
            bytes.append(littleEndian: next.value)
        }
        bytes.append(littleEndian: life ?? 0)
        bytes.append(sum == nil ? 0 : 1)
        bytes.append(littleEndian: sum?.keys ?? 0)
        bytes.append(littleEndian: sum?.checksum ?? 0)
        bytes.append(littleEndian: noteOffset?.value ?? -1)
        if let promotion {
            bytes.append(littleEndian: UInt16(promotion.utf8.count))
            bytes.append(contentsOf: promotion.utf8)
        }
        return bytes
    }

    /// nil: written by a build that this one does not know, or by nobody.
    init?(decoding bytes: [UInt8]) {
        var note = NoteReader(bytes)
        guard let version = note.take(UInt8.self), (Self.oldestVersion...Self.versionOfPromotion).contains(version),
            let format = note.take(UInt8.self),
            let epoch = note.take(UInt32.self),
            let clock = note.take(Int64.self), let emitted = note.take(UInt32.self),
            let changelog = note.take(Int64.self),
            let writtenAt = note.take(Int64.self), let count = note.take(UInt16.self)
        else { return nil }
        self.init(format: format)
        self.epoch = epoch
        self.clock = clock
        self.emitted = emitted
        self.changelog = NextOffset(changelog)
        self.writtenAt = writtenAt
        for _ in 0..<count {
            guard let length = note.take(UInt16.self), let topic = note.take(count: Int(length)),
                let next = note.take(Int64.self)
            else { return nil }
            positions[String(decoding: topic, as: UTF8.self)] = NextOffset(next)
        }
        if version > 1, !takeLife(&note) { return nil }
        if version == Self.versionOfPromotion {
            guard let length = note.take(UInt16.self), let name = note.take(count: Int(length)) else { return nil }
            promotion = String(decoding: name, as: UTF8.self)
        }
        guard note.isAtEnd else { return nil }
    }

    private mutating func takeLife(_ note: inout NoteReader) -> Bool {
        guard let life = note.take(UInt64.self), let hasSum = note.take(UInt8.self), hasSum <= 1,
            let keys = note.take(Int64.self), let checksum = note.take(UInt64.self),
            let noteOffset = note.take(Int64.self), noteOffset >= -1
        else { return false }
        self.life = life == 0 ? nil : life
        sum = hasSum == 1 ? StateSum(keys: keys, checksum: checksum) : nil
        self.noteOffset = noteOffset < 0 ? nil : NextOffset(noteOffset)
        return true
    }
}

/// Keys of the changelog's records.
enum ChangelogKey {
    /// Its value is the partition's `Note`.
    static let note: [UInt8] = [0]
    /// Followed by the key of an entry.
    static let entry: UInt8 = 1
}
