// A place in a document, counted as editors count.

public struct JSONPlace: Sendable, Equatable, Comparable {
    /// From 1.
    public let line: Int
    /// In characters (Unicode scalars), from 1.
    public let column: Int

    /// The place of a byte; an offset after the end counts as the end. Time grows with the offset.
    public init(of offset: Int, in document: Span<UInt8>) {
        var line = 1
        var column = 1
        for index in 0..<min(max(offset, 0), document.count) {
            let byte = document[index]
            if byte == UInt8(ascii: "\n") {
                line += 1
                column = 1
            } else if byte & 0xc0 != 0x80 {
                // All other bytes of a character continue it.
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
