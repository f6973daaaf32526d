// What the buffer of a connection still shows of a head before libmicrohttpd changes it, and what came before the head.
//
// Version 0.9.75 replaces each line end by zero bytes, and the colon of each line by one. So a line that is only a colon looks like an
// empty line, with which a head ends: for the library too. These functions read the bytes before that happens.
//
// They rest on how that version uses its buffer (`HeadCheck` and the tests try it). The buffer begins on a page of its own,
// because it is larger than 32 KiB. A request begins at its start, and everything behind the bytes that have arrived is zero. If the
// library gets no such memory, it refuses each request with 400.

import Glibc

enum RawHead {
    /// From 1.0 on the library leaves a CR and an LF where they were, and itself refuses a head with a zero byte or without a
    /// name. When its buffer is almost full, it moves what follows a head over the end of the last line, so what is there
    /// then says nothing about the head.
    static let isOverwritten = Libmicrohttpd.version.hasPrefix("0.")

    /// Every page is at least this large. Where one byte of it can be read, all can.
    private static let pageBytes: UInt = 4096

    enum End {
        /// The address behind the empty line that ends the head.
        case at(UInt)
        /// The head has not arrived completely yet, or is longer than a page. It goes on behind this address.
        case behind(UInt)
        /// A line contains a zero byte.
        case hidden

        func allows(_ end: UnsafePointer<CChar>) -> Bool {
            switch self {
            case .at(let address): UInt(bitPattern: end) == address
            case .behind(let address): UInt(bitPattern: end) > address
            case .hidden: false
            }
        }
    }

    /// - Parameter target: of the request line, the only line that the library has read.
    static func end(after target: UnsafePointer<CChar>) -> End {
        let limit = target + Int(pageBytes - UInt(bitPattern: target) % pageBytes)
        var line = afterRequestLine(from: target, before: limit)
        while line < limit, let found = memchr(line, 0x0A, limit - line) {
            let lineEnd = UnsafePointer(found.assumingMemoryBound(to: CChar.self))
            guard memchr(line, 0, lineEnd - line) == nil else { return .hidden }
            let isEmpty = lineEnd == line || (lineEnd == line + 1 && line.pointee == 0x0D)
            line = lineEnd + 1
            if isEmpty { return .at(UInt(bitPattern: line)) }
        }
        return .behind(UInt(bitPattern: line))
    }

    /// The target ends with a zero byte, and so does the version, if there is one. One more stands for a CR if something
    /// follows it.
    private static func afterRequestLine(
        from target: UnsafePointer<CChar>, before limit: UnsafePointer<CChar>
    ) -> UnsafePointer<CChar> {
        var place = min(target + strnlen(target, limit - target) + 1, limit)
        let version = strnlen(place, limit - place)
        place = min(place + version + (version > 0 ? 1 : 0), limit)
        return place + 1 < limit && place.pointee == 0 && place[1] != 0 ? place + 1 : place
    }

    /// Something other than one empty line came before the request. The library skips a line that begins with a zero byte as
    /// if it were empty. Such a line is not seen here if it fills whole pages.
    /// - Parameter method: the first byte of the head.
    static func hasLines(before method: UnsafePointer<CChar>) -> Bool {
        let bytes = Int(UInt(bitPattern: method) % pageBytes)
        return bytes > 2 || UnsafeBufferPointer(start: method - bytes, count: bytes).contains { $0 != 0 }
    }
}
