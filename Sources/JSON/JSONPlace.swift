// Where in a document something stands, as editors count.

public struct JSONPlace: Sendable, Equatable, Comparable {
    /// From 1.
    public let line: Int
    /// In characters (Unicode scalars), from 1.
    public let column: Int

    /// Of a byte; one behind the end is taken as the end. Time grows with the offset.
    public init(of offset: Int, in document: Span<UInt8>) {
        var line = 1
        var column = 1
        for index in 0..<min(max(offset, 0), document.count) {
            let byte = document[index]
            if byte == UInt8(ascii: "\n") {
                line += 1
                column = 1
            } else if byte & 0xc0 != 0x80 {
                // The other bytes of a character continue it.
                column += 1
            }
        }
        self.line = line
        self.column = column
    }

    public static func < (left: JSONPlace, right: JSONPlace) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}
