// Reads time zone files as described in RFC 8536. The parts come in the order of the file.

/// The content of a file, without abbreviations and without the marks for summer time.
struct TZif {
    /// Seconds ahead of UTC before the first change.
    let before: Int64
    /// Sorted by time; each change takes effect at its second since 1970.
    let changes: [OffsetChange]
    /// Applies after the last change; nil: the last offset stays.
    let rule: ZoneRule?

    init(_ bytes: [UInt8]) throws(TZifFault) {
        var reader = ByteReader(bytes)
        let header = try Header(&reader)
        guard header.version > 1 else {
            self.init(try Block(&reader, header, timeBytes: 4), rule: nil)
            return
        }
        // The first block repeats the instants that fit into 32 bits, for old readers.
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

    /// The text between two line feeds; it is empty if there is no rule.
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

/// From this second since 1970, clocks have this offset from UTC in seconds.
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

    /// 1 or greater.
    var version: Int { versionByte == 0 ? 1 : Int(versionByte - UInt8(ascii: "0")) }

    init(_ reader: inout ByteReader) throws(TZifFault) {
        // Three arbitrary bytes are not a truncated time zone file, so they are reported as another format.
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

    /// The counts have 32 bits, so the sum cannot overflow.
    func blockBytes(timeBytes: Int) -> Int {
        transitions * (timeBytes + 1) + types * Block.typeBytes + abbreviationBytes + leapSeconds * (timeBytes + 4)
            + standardIndicators + utIndicators
    }
}

private struct Block {
    static let typeBytes = 6
    /// The limits in the RFC: a little more than a day. So the days of one instant in two zones are equal or
    /// neighbours.
    static let offsetSeconds: ClosedRange<Int64> = -89_999...93_599

    /// One for each local time type; never empty.
    let offsets: [Int64]
    let changes: [OffsetChange]

    init(_ reader: inout ByteReader, _ header: Header, timeBytes: Int) throws(TZifFault) {
        // Checked before allocating: a count without enough bytes must not cost memory.
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

    /// Big-endian two's complement of four or eight bytes.
    mutating func integer(_ bytes: Int) throws(TZifFault) -> Int64 {
        let value = try take(bytes).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        return bytes == 4 ? Int64(Int32(truncatingIfNeeded: value)) : Int64(bitPattern: value)
    }

    mutating func count() throws(TZifFault) -> Int { Int(try take(4).reduce(0 as UInt32) { $0 << 8 | UInt32($1) }) }
}
