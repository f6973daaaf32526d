// How the head determines the end of the body. If two programs read one request differently, a second request can be
// smuggled past a proxy. So everything ambiguous is refused here; libmicrohttpd accepts most of it, even in strict
// mode.

import Platform

struct Framing: Equatable {
    var declaredBytes: Int?
    var isChunked = false
    var hasBody: Bool { isChunked || (declaredBytes ?? 0) > 0 }

    enum Fault: String, Error {
        case method = "the method is not a token"
        case target = "the target of the request contains a blank or a control character"
        case name = "a header name is not a token"
        case start = "only one empty line may come before the request"
        case end = "the head has a line without a name, or a line with a zero byte"
        case value = "a header value contains a control character"
        case folded = "a header line is continued on the next line"
        case version = "only HTTP/1.0 and HTTP/1.1 are supported"
        case host = "exactly one Host header is required"
        case lengths = "more than one Content-Length header"
        case length = "Content-Length is not a number"
        case expectation = "an Expect header without a body"
        case both = "Content-Length and Transfer-Encoding must not both be present"
        case encoding = "the only supported transfer encoding is chunked, once, in HTTP/1.1"
    }

    init(method: String = "GET", version: String, target: String = "/", headers: HTTPHeaders) throws(Fault) {
        guard isToken(method) else { throw .method }
        guard target.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { throw .target }
        guard headers.fields.allSatisfy({ isToken($0.name) }) else { throw .name }
        guard headers.fields.allSatisfy({ $0.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 } }) else {
            throw .value
        }
        guard version == "HTTP/1.1" || version == "HTTP/1.0" else { throw .version }
        let hosts = headers.all("Host").count
        guard hosts == 1 || (hosts == 0 && version == "HTTP/1.0") else { throw .host }
        let lengths = headers.all("Content-Length")
        let encodings = headers.all("Transfer-Encoding")
        guard lengths.count <= 1 else { throw .lengths }
        guard lengths.isEmpty || encodings.isEmpty else { throw .both }
        if let length = lengths.first {
            guard let bytes = decimal(length) else { throw .length }
            declaredBytes = bytes
        }
        if let encoding = encodings.first {
            guard encodings.count == 1, equalsIgnoringCase(encoding, "chunked"), version == "HTTP/1.1" else {
                throw .encoding
            }
            isChunked = true
        }
        // Clients must not send this. The library would ask for a body and answer once more for what follows.
        guard hasBody || headers["Expect"] == nil else { throw .expectation }
    }
}

private func isToken(_ name: String) -> Bool {
    !name.isEmpty
        && name.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
        }
}
