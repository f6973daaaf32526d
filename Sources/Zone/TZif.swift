// Files of time zones as RFC 8536 describes them. The order of the parts is that of the file.

/// What a file says of one zone; abbreviations and which time is called summer time are left out.
struct TZif {
    /// Seconds ahead of UTC, before the first change.
    let before: Int64
    /// In the order of time, each from its second since 1970.
    let changes: [OffsetChange]
    /// Holds from the last change on; nil: as that left it.
    let rule: ZoneRule?

    init(_ bytes: [UInt8]) throws(TZifFault) {
        var reader = ByteReader(bytes)
        let header = try Header(&reader)
        guard header.version > 1 else {
            self.init(try Block(&reader, header, timeBytes: 4), rule: nil)
            return
        }
        // The first block repeats those instants that fit 32 bits, for old readers.
        _ = try reader.take(header.blockBytes(timeBytes: 4))
        let second = try Header(&reader)
        guard second.version == header.version else { throw .inconsistentHeader }
        let block = try Block(&reader, second, timeBytes: 8)
        self.init(block, rule: try Self.footer(&reader))
    }

    private init(_ block: Block, rule: ZoneRule?) {
        before = block.offsets[0]
        changes = block.changes
        self.rule = rule
    }

    /// Between two line feeds; empty when no rule is known.
    private static func footer(_ reader: inout ByteReader) throws(TZifFault) -> ZoneRule? {
        let lineFeed = UInt8(ascii: "\n")
        guard try reader.take(1).first == lineFeed, let length = reader.rest.firstIndex(of: lineFeed) else {
            throw .truncated
        }
        let text = try reader.take(length - reader.rest.startIndex)
        guard !text.isEmpty else { return nil }
        guard let rule = ZoneRule(text) else { throw .badFooter(String(decoding: text, as: UTF8.self)) }
        return rule
    }
}

/// From this second since 1970 on clocks are so many seconds ahead of UTC.
struct OffsetChange: Equatable {
    let second: Int64
    let offset: Int64
}

private struct Header {
    static let magic = Array("TZif".utf8)
    static let reservedBytes = 15

    let versionByte: UInt8
    let utIndicators: Int
    let standardIndicators: Int
    let leapSeconds: Int
    let transitions: Int
    let types: Int
    let abbreviationBytes: Int

    /// From 1.
    var version: Int { versionByte == 0 ? 1 : Int(versionByte - UInt8(ascii: "0")) }

    init(_ reader: inout ByteReader) throws(TZifFault) {
        // A text of three bytes is no truncated file of a zone.
        guard reader.rest.prefix(4).elementsEqual(Self.magic.prefix(reader.rest.count)) else { throw .notTZif }
        _ = try reader.take(Self.magic.count)
        versionByte = try reader.take(1).first ?? 0
        guard versionByte == 0 || (UInt8(ascii: "2")...UInt8(ascii: "4")).contains(versionByte) else {
            throw .unknownVersion(versionByte)
        }
        _ = try reader.take(Self.reservedBytes)
        utIndicators = try reader.count()
        standardIndicators = try reader.count()
        leapSeconds = try reader.count()
        transitions = try reader.count()
        types = try reader.count()
        abbreviationBytes = try reader.count()
    }

    /// Counts are of 32 bits: the sum fits.
    func blockBytes(timeBytes: Int) -> Int {
        transitions * (timeBytes + 1) + types * Block.typeBytes + abbreviationBytes + leapSeconds * (timeBytes + 4)
            + standardIndicators + utIndicators
    }
}

private struct Block {
    static let typeBytes = 6
    /// Of the RFC: a day and some hours. The days of an instant in two zones are neighbours by it.
    static let offsetSeconds: ClosedRange<Int64> = -89_999...93_599

    /// Of each local time type, never empty.
    let offsets: [Int64]
    let changes: [OffsetChange]

    init(_ reader: inout ByteReader, _ header: Header, timeBytes: Int) throws(TZifFault) {
        // Before anything is kept: a count that is not covered by bytes costs no memory.
        guard reader.rest.count >= header.blockBytes(timeBytes: timeBytes) else { throw .truncated }
        guard (1...256).contains(header.types), header.abbreviationBytes > 0,
            [0, header.types].contains(header.standardIndicators), [0, header.types].contains(header.utIndicators)
        else { throw .inconsistentHeader }
        guard header.leapSeconds == 0 else { throw .countsLeapSeconds }

        var seconds: [Int64] = []
        for _ in 0..<header.transitions {
            let second = try reader.integer(timeBytes)
            if let last = seconds.last, last >= second { throw .transitionsOutOfOrder }
            seconds.append(second)
        }
        let indices = try reader.take(header.transitions).map(Int.init)
        var offsets: [Int64] = []
        for index in 0..<header.types {
            let offset = try reader.integer(4)
            guard Self.offsetSeconds.contains(offset) else { throw .offsetOutOfRange(seconds: offset) }
            let flagAndName = Array(try reader.take(2))
            guard flagAndName[0] <= 1, flagAndName[1] < header.abbreviationBytes else { throw .badType(index) }
            offsets.append(offset)
        }
        _ = try reader.take(header.abbreviationBytes + header.standardIndicators + header.utIndicators)
        if let index = indices.first(where: { $0 >= offsets.count }) { throw .unknownType(index) }
        changes = zip(seconds, indices).map { OffsetChange(second: $0, offset: offsets[$1]) }
        self.offsets = offsets
    }
}

private struct ByteReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    mutating func take(_ count: Int) throws(TZifFault) -> ArraySlice<UInt8> {
        guard count <= rest.count else { throw .truncated }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// Of four bytes or eight, the greatest first, in two's complement.
    mutating func integer(_ bytes: Int) throws(TZifFault) -> Int64 {
        let value = try take(bytes).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        return bytes == 4 ? Int64(Int32(truncatingIfNeeded: value)) : Int64(bitPattern: value)
    }

    mutating func count() throws(TZifFault) -> Int { Int(try take(4).reduce(0 as UInt32) { $0 << 8 | UInt32($1) }) }
}
