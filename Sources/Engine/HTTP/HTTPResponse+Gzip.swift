// Compressed bodies.

internal import CZlib

extension HTTPResponse {
    /// A smaller body goes over the network in one packet anyway.
    static let fewestCompressedBytes = 1024
    /// Beyond this, zlib's counters of bytes would need several calls. No answer is as large.
    static let mostCompressedBytes = 1 << 30

    /// The same response with a compressed body, if the client accepts gzip. Not with an ETag, which stands for the exact bytes.
    public func compressed(for request: HTTPHeaders) -> HTTPResponse {
        guard (Self.fewestCompressedBytes...Self.mostCompressedBytes).contains(body.count), headers["ETag"] == nil,
            request.acceptsGzip, let smaller = gzip(body)
        else { return self }
        var response = self
        response.body = smaller
        response.headers.add("Content-Encoding", "gzip")
        return response
    }
}

extension HTTPHeaders {
    /// Whether a field `Accept-Encoding` names gzip, or everything, and does not give it the weight 0.
    var acceptsGzip: Bool {
        weight(of: "gzip", in: "Accept-Encoding") ?? weight(of: "*", in: "Accept-Encoding") ?? 0 > 0
    }

    /// The weight that a field gives to a value, in thousandths: 500 in "text/csv;q=0.5, application/json". nil: it does not name
    /// the value.
    public func weight(of value: String, in field: String) -> Int? {
        for text in all(field) {
            for part in text.utf8.split(separator: UInt8(ascii: ",")) {
                let pieces = part.split(separator: UInt8(ascii: ";")).map {
                    String(decoding: withoutBlanks(Array($0)[...]), as: UTF8.self)
                }
                guard let name = pieces.first, equalsIgnoringCase(name, value) else { continue }
                return pieces.dropFirst().lazy.compactMap(weight).first ?? 1000
            }
        }
        return nil
    }

    /// 250 for the parameter "q=0.25". nil: another parameter.
    private func weight(_ parameter: String) -> Int? {
        let parameter = parameter.utf8
        guard parameter.first.map({ $0 | 0x20 }) == UInt8(ascii: "q") else { return nil }
        let rest = parameter.dropFirst().drop { $0 == UInt8(ascii: " ") }
        guard rest.first == UInt8(ascii: "=") else { return nil }
        let number = rest.dropFirst().drop { $0 == UInt8(ascii: " ") }
        guard number.first == UInt8(ascii: "0") else { return 1000 }
        let places = number.dropFirst(2).prefix(3).prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return places.reduce(0) { 10 * $0 + Int($1 - UInt8(ascii: "0")) } * [1000, 100, 10, 1][places.count]
    }
}

/// nil if there was no memory for it.
private func gzip(_ bytes: [UInt8]) -> [UInt8]? {
    // Text of JSON becomes much smaller. If bytes cannot be compressed, the original is sent.
    let smaller = [UInt8](unsafeUninitializedCapacity: bytes.count) { output, count in
        count = bytes.withUnsafeBufferPointer { input in
            perennial_gzip(input.baseAddress, input.count, output.baseAddress, output.count, 6)
        }
    }
    return smaller.isEmpty ? nil : smaller
}
