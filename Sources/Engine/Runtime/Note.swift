// The position of a partition's state in the log. The store has it with every write, and the changelog with every
// commit.

internal import Log
internal import Store

/// How far a partition has been processed.
struct Note: Equatable {
    /// The greatest format of the values.
    var format: UInt8
    /// Increases when the state of a replay replaces this one. A store of another epoch cannot be used.
    var epoch: UInt32 = 0
    /// The replay whose state is replacing this one, while that promotion is in progress. Until it ends the state is a
    /// mixture, and no worker may use it.
    var promotion: String?
    /// The greatest timestamp of the event topic's records. Before the first record it is the least possible number.
    var clock = Int64.min
    /// How many outputs the record at the event topic's position has already caused: outputs of timers that it made
    /// fire, if a commit came between them.
    var emitted: UInt32 = 0
    /// The next record to read, by the topic's name.
    var positions: [String: NextOffset] = [:]
    /// The life of the changelog to which this note belongs: a random number, chosen with the changelog's first note. A
    /// topic that is deleted and created again begins another life. nil: a build without lives has written the note.
    var life: UInt64?
    /// The sum of the state at these positions; in the store, the sum of the store's contents. nil: it is not known.
    var sum: StateSum?
    /// Only in the store: the store contains the changelog up to this offset.
    var changelog = NextOffset(0)
    /// Only in the store: when it was written, in milliseconds since 1970 by the host's clock.
    var writtenAt: Int64 = 0
    /// Only in the store: at or after this offset the changelog has a note of this life. nil: it is not known.
    var noteOffset: NextOffset?

    init(format: UInt8) { self.format = format }

    /// A build reads its own version and the one before, which had neither lives nor sums. Only the notes of a
    /// promotion in progress have another version, so that a build without promotions does not use them.
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

    /// nil: the bytes come from a build that this build cannot read, or are not a note.
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
    /// Key of the partition's `Note`.
    static let note: [UInt8] = [0]
    /// The first byte; the key of an entry follows.
    static let entry: UInt8 = 1
}
