// Requests and responses.

public import Platform

/// Header fields in the order in which they arrived. Names are looked up without regard to case.
public struct HTTPHeaders: Sendable, Equatable {
    public struct Field: Sendable, Equatable {
        public let name: String
        public let value: String
    }

    public private(set) var fields: [Field] = []

    public init() {}

    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// The first value of `name`. Use `all` where a second value must be noticed.
    public subscript(_ name: String) -> String? {
        fields.first { equalsIgnoringCase($0.name, name) }?.value
    }

    /// Every value of `name`, in order.
    public func all(_ name: String) -> [String] {
        fields.filter { equalsIgnoringCase($0.name, name) }.map(\.value)
    }
}

/// For ASCII letters only, as the standard says: a Kelvin sign is not a k.
func equalsIgnoringCase(_ left: String, _ right: String) -> Bool {
    func lower(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
    return left.utf8.count == right.utf8.count && zip(left.utf8, right.utf8).allSatisfy { lower($0) == lower($1) }
}

public struct HTTPRequest: Sendable {
    /// Unchanged: methods are case-sensitive.
    public let method: String
    /// Without the query, still percent-encoded.
    public let path: String
    /// Everything after the first `?`, still percent-encoded. It is nil if the target has no `?`.
    public let query: String?
    public let headers: HTTPHeaders
    /// The other end of the connection, which may be a proxy.
    public let peer: IPAddress?
    /// Empty until the body has arrived.
    public internal(set) var body: [UInt8] = []
}

extension HTTPRequest {
    init(method: String, target: String, headers: HTTPHeaders, peer: IPAddress?) {
        let relative = HTTPRequest.withoutAuthority(target)
        // Uses bytes: searching a long target by characters would cost more than all other work for its request.
        let mark = relative.utf8.firstIndex(of: UInt8(ascii: "?"))
        self.init(
            method: method, path: String(relative[..<(mark ?? relative.endIndex)]),
            query: mark.map { String(relative[relative.utf8.index(after: $0)...]) }, headers: headers, peer: peer)
    }

    /// A server must also understand `GET http://host/path`, though only proxies receive it.
    private static func withoutAuthority(_ target: String) -> Substring {
        for scheme in ["http://", "https://"] where target.hasPrefix(scheme) {
            let rest = target.dropFirst(scheme.count)
            guard let slash = rest.utf8.firstIndex(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }) else {
                return "/"
            }
            return rest.utf8[slash] == UInt8(ascii: "?") ? "/" + rest[slash...] : rest[slash...]
        }
        return target[...]
    }
}

public struct HTTPResponse: Sendable, Equatable {
    public var status: Int
    /// The server itself adds Date, Content-Length and Connection.
    public var headers: HTTPHeaders
    public var body: [UInt8]
    /// For clients that must not hold a connection. A body that they are still sending is read first, as for every
    /// refusal.
    public var endsConnection = false

    public init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    public static func text(_ status: Int, _ text: String) -> HTTPResponse {
        content(status, "text/plain; charset=utf-8", Array((text + "\n").utf8))
    }

    public static func json(_ status: Int, _ body: [UInt8]) -> HTTPResponse {
        content(status, "application/json", body)
    }

    public static func content(_ status: Int, _ type: String, _ body: [UInt8]) -> HTTPResponse {
        var response = HTTPResponse(status: status, body: body)
        response.headers.add("Content-Type", type)
        return response
    }
}

/// A part of a header's value without the blanks and tabs around it.
package func withoutBlanks(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
    var rest = text.drop(while: isBlank)
    while let last = rest.last, isBlank(last) { rest.removeLast() }
    return rest
}
