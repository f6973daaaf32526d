// A reader of HTTP/1 that refuses everything that RFC 9112 does not allow. It was written without looking at the server's.

import HTTP

struct ReadRequest {
    var method: [UInt8]
    var target: [UInt8]
    var fields: [(name: [UInt8], value: [UInt8])]
    var body: [UInt8] = []

    func isRead(as request: HTTPRequest) -> Bool {
        guard Array(request.method.utf8) == method, request.body == body else { return false }
        // In the absolute form the authority is removed.
        if target.first == UInt8(ascii: "/") {
            guard shown(target) == shown(Array((request.path + (request.query.map { "?" + $0 } ?? "")).utf8)) else {
                return false
            }
        }
        let others = request.headers.fields
        return others.count == fields.count
            && zip(others, fields).allSatisfy { other, field in
                Array(other.name.utf8) == field.name
                    && StrictReader.trimmed(Array(other.value.utf8)) == shown(field.value)
            }
    }

    /// Bytes that are not UTF-8 become replacement characters in texts.
    private func shown(_ bytes: [UInt8]) -> [UInt8] { Array(String(decoding: bytes, as: UTF8.self).utf8) }
}

struct StrictReader {
    private struct Refused: Error {}

    private let text: [UInt8]
    private var place = 0
    /// The last line ended with a bare LF.
    private var hasBareLF = false

    /// Reads up to the first request that cannot be read, or after which nothing may follow.
    static func requests(in text: [UInt8]) -> [ReadRequest] {
        var reader = StrictReader(text: text)
        var requests: [ReadRequest] = []
        while let (request, goesOn) = try? reader.next() {
            requests.append(request)
            if !goesOn { break }
        }
        return requests
    }

    private init(text: [UInt8]) { self.text = text }

    private mutating func next() throws(Refused) -> (ReadRequest, goesOn: Bool) {
        var line = try self.line()
        // An empty line may come before a request. The library (0.9.75) replaces CR and LF by zero bytes, so it leaves the same of
        // an LF that follows a zero byte.
        if line == [0] && hasBareLF { line = try self.line() }
        while line.isEmpty { line = try self.line() }
        let lineEndsWithLF = hasBareLF
        let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map(Array.init)
        guard words.count == 3, Self.isToken(words[0]), !words[1].isEmpty,
            words[1].allSatisfy({ $0 > 0x20 && $0 != 0x7F })
        else { throw Refused() }
        let isOld = words[2] == Array("HTTP/1.0".utf8)
        guard isOld || words[2] == Array("HTTP/1.1".utf8) else { throw Refused() }
        var request = ReadRequest(method: words[0], target: words[1], fields: try fields(behindLF: lineEndsWithLF))
        func values(_ name: String) -> [[UInt8]] {
            request.fields.filter { Self.lower($0.name) == Array(name.utf8) }.map(\.value)
        }
        let (hosts, lengths) = (values("host"), values("content-length"))
        guard hosts.count == 1 || (isOld && hosts.isEmpty), lengths.count <= 1, values("transfer-encoding").isEmpty
        else {
            throw Refused()
        }
        if let length = lengths.first {
            guard !length.isEmpty, length.allSatisfy({ (0x30...0x39).contains($0) }),
                let bytes = Int(String(decoding: length, as: UTF8.self)), bytes <= text.count - place
            else { throw Refused() }
            request.body = Array(text[place..<(place + bytes)])
            place += bytes
        }
        let endings = values("connection").map(Self.lower)
        let goesOn = isOld ? !endings.isEmpty : !endings.contains(Array("close".utf8))
        return (request, goesOn)
    }

    /// - Parameter behindLF: the request line ended with a bare LF. The library leaves the same of it, if a line follows that is only
    ///   a zero byte, as of CR, LF and an empty line. Nothing is hidden there: without fields the connection closes.
    private mutating func fields(behindLF: Bool) throws(Refused) -> [(name: [UInt8], value: [UInt8])] {
        var fields: [(name: [UInt8], value: [UInt8])] = []
        while true {
            let line = try self.line()
            if line.isEmpty || (line == [0] && behindLF && fields.isEmpty) { return fields }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw Refused() }
            let (name, value) = (Array(line[..<colon]), Self.trimmed(Array(line[(colon + 1)...])))
            guard Self.isToken(name), value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw Refused()
            }
            fields.append((name, value))
        }
    }

    /// A bare LF may end a line of a head (RFC 9112, 2.2); a bare CR may not.
    private mutating func line() throws(Refused) -> [UInt8] {
        guard let end = text[place...].firstIndex(of: 0x0A) else { throw Refused() }
        var line = Array(text[place..<end])
        place = end + 1
        hasBareLF = line.last != 0x0D
        if line.last == 0x0D { line.removeLast() }
        guard !line.contains(0x0D) else { throw Refused() }
        return line
    }

    static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        let rest = bytes.drop { $0 == 0x20 || $0 == 0x09 }
        return Array(rest.prefix(rest.lastIndex { $0 != 0x20 && $0 != 0x09 }.map { $0 - rest.startIndex + 1 } ?? 0))
    }

    private static func lower(_ bytes: [UInt8]) -> [UInt8] { bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 } }

    private static func isToken(_ bytes: [UInt8]) -> Bool {
        let marks = Array("!#$%&'*+-.^_`|~".utf8)
        return !bytes.isEmpty
            && bytes.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: marks.contains(byte)
                }
            }
    }
}
