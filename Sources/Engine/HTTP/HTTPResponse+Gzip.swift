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
    var acceptsGzip: Bool { accepts("gzip", in: "Accept-Encoding", orAny: "*") }

    /// Whether a field names this value without the weight 0: "text/csv;q=0.5, application/json".
    ///
    /// - Parameter any: stands for every value that is not named itself.
    public func accepts(_ value: String, in field: String, orAny any: String? = nil) -> Bool {
        var byAny = false
        for text in all(field) {
            for part in text.utf8.split(separator: UInt8(ascii: ",")) {
                let pieces = part.split(separator: UInt8(ascii: ";")).map {
                    String(decoding: withoutBlanks(Array($0)[...]), as: UTF8.self)
                }
                guard let name = pieces.first else { continue }
                let isRefused = pieces.dropFirst().contains(where: isZeroWeight)
                if equalsIgnoringCase(name, value) { return !isRefused }
                if let any, name == any { byAny = !isRefused }
            }
        }
        return byAny
    }

    /// "q=0", "q=0.0" and so on.
    private func isZeroWeight(_ parameter: String) -> Bool {
        let parameter = parameter.utf8
        guard parameter.first.map({ $0 | 0x20 }) == UInt8(ascii: "q") else { return false }
        let rest = parameter.dropFirst().drop { $0 == UInt8(ascii: " ") }
        guard rest.first == UInt8(ascii: "=") else { return false }
        let number = rest.dropFirst().drop { $0 == UInt8(ascii: " ") }
        return number.first == UInt8(ascii: "0")
            && number.allSatisfy { $0 == UInt8(ascii: "0") || $0 == UInt8(ascii: ".") }
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
