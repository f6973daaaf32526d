// One request in flight.

internal import CCurl
internal import Platform

/// Owns an easy handle and what it refers to. Used on the client's thread only; callbacks run there too, inside
/// `curl_multi_perform`.
final class Transfer {
    let order: ClientCore.Order
    let easy: UnsafeMutableRawPointer

    private let maxBodyBytes: Int
    private var headerLines: UnsafeMutablePointer<curl_slist>?
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private var headers: [HTTPClient.Header] = []
    private var headBytes = 0
    private var body: [UInt8] = []
    /// The error that a callback found; the library itself knows only that the callback failed.
    private var objection: HTTPClientFault?
    /// true: part of the request may have been written.
    private var hasBegun = false
    /// true: since its last attempt began, a transfer that waits for a connection was woken.
    var hasWokenOthers = true
    private let end: Deadline

    /// Byte limit of all heads of one answer: more than servers send, and less than the library would accept.
    private static let maxHeadBytes = 64 << 10
    /// Time beyond the limit that the library enforces.
    private static let overdueAfter: Duration = .seconds(2)

    /// true: the library should have ended the transfer by now.
    var isOverdue: Bool { end.hasPassed }

    init(_ order: ClientCore.Order, _ configuration: HTTPClient.Configuration) throws(HTTPClientFault) {
        self.order = order
        maxBodyBytes = configuration.maxResponseBytes
        end = Deadline(after: (order.request.timeout ?? configuration.timeout) + Self.overdueAfter)
        guard let easy = curl_easy_init() else { throw HTTPClientFault(.failed, "libcurl has no memory") }
        self.easy = easy
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        try configure(configuration, for: order.request)
        try describe(order.request)
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_slist_free_all(headerLines)
        errorText.deallocate()
    }

    // MARK: Before

    private func configure(
        _ configuration: HTTPClient.Configuration, for request: HTTPClient.Request
    ) throws(HTTPClientFault) {
        let numbers: [(CURLoption, Int)] = [
            // Enforces time limits without signals, which would interrupt other threads.
            (CURLOPT_NOSIGNAL, 1),
            (CURLOPT_CONNECTTIMEOUT_MS, Int(configuration.connectTimeout.timeoutMilliseconds)),
            (CURLOPT_TIMEOUT_MS, Int((request.timeout ?? configuration.timeout).timeoutMilliseconds)),
            (CURLOPT_SSL_VERIFYPEER, 1),
            (CURLOPT_SSL_VERIFYHOST, 2),
            (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS)),
            // Shares a connection of HTTP/2 instead of opening another. With TLS the handshake shows whether that is
            // possible; without it the library would hold every further request until the first one is answered.
            (CURLOPT_PIPEWAIT, request.url.lowercased().hasPrefix("https:") ? 1 : 0),
            (CURLOPT_TCP_KEEPALIVE, 1),
            (CURLOPT_FOLLOWLOCATION, 0),
        ]
        for (option, value) in numbers { try check(perennial_curl_set_number(easy, option, value)) }
        try check(perennial_curl_set_text(easy, CURLOPT_PROTOCOLS_STR, "http,https"))
        try check(perennial_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText))
        // The owner keeps this object until the easy handle has been removed from the multi handle.
        let context = Unmanaged.passUnretained(self).toOpaque()
        try check(perennial_curl_set_sinks(easy, takeHeadLine, takeBodyPiece, context))
        try check(perennial_curl_set_leave(easy, askLeave, context))
        if !configuration.usesProxyOfEnvironment { try check(perennial_curl_set_text(easy, CURLOPT_PROXY, "")) }
        if let authorities = configuration.extraAuthorities {
            let code = authorities.withUnsafeBytes {
                perennial_curl_set_blob(easy, CURLOPT_CAINFO_BLOB, $0.baseAddress, $0.count)
            }
            try check(code)
        }
        if let userAgent = configuration.userAgent {
            try check(perennial_curl_set_text(easy, CURLOPT_USERAGENT, userAgent))
        }
    }

    private func describe(_ request: HTTPClient.Request) throws(HTTPClientFault) {
        guard isToken(request.method) else { throw HTTPClientFault(.invalidRequest, "the method is not a token") }
        // C would read only up to the zero byte, and a line break in a URL is always a mistake.
        guard isOneLine(request.url) else { throw HTTPClientFault(.invalidRequest, "the URL has control characters") }
        // Without a scheme the library would guess one.
        guard ["http://", "https://"].contains(where: request.url.lowercased().hasPrefix) else {
            throw HTTPClientFault(.invalidRequest, "the URL does not begin with http:// or https://")
        }
        try check(perennial_curl_set_text(easy, CURLOPT_URL, request.url))
        switch request.method {
        case "GET" where request.body.isEmpty: break
        case "HEAD": try check(perennial_curl_set_number(easy, CURLOPT_NOBODY, 1))
        default:
            try check(perennial_curl_set_text(easy, CURLOPT_CUSTOMREQUEST, request.method))
            if request.method == "POST" || request.method == "PUT" || !request.body.isEmpty {
                try setBody(request.body)
            }
        }
        try setHeaders(request.headers)
    }

    private func setBody(_ body: [UInt8]) throws(HTTPClientFault) {
        try check(perennial_curl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count)))
        // The library copies the body. An empty body needs an address too: with nil the library would read a body from
        // elsewhere.
        let code = body.withUnsafeBytes { bytes -> CURLcode in
            guard let address = bytes.baseAddress else {
                return perennial_curl_set_text(easy, CURLOPT_COPYPOSTFIELDS, "")
            }
            return perennial_curl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: address))
        }
        try check(code)
    }

    private func setHeaders(_ headers: [HTTPClient.Header]) throws(HTTPClientFault) {
        // No Expect: it costs a round trip, and a second with servers that do not know it. No Content-Type unless the
        // caller gave one.
        for name in ["Expect", "Content-Type"]
        where !headers.contains(where: { $0.name.lowercased() == name.lowercased() }) {
            try append("\(name):")
        }
        for header in headers {
            guard isToken(header.name), isOneLine(header.value) else {
                throw HTTPClientFault(.invalidRequest, "a header has an invalid name or value")
            }
            // "Name:" would remove the header; "Name;" sends it empty.
            try append(header.value.isEmpty ? "\(header.name);" : "\(header.name): \(header.value)")
        }
        try check(perennial_curl_set_pointer(easy, CURLOPT_HTTPHEADER, headerLines))
    }

    private func append(_ line: String) throws(HTTPClientFault) {
        guard let longer = curl_slist_append(headerLines, line) else {
            throw HTTPClientFault(.failed, "libcurl has no memory")
        }
        headerLines = longer
    }

    private func check(_ code: CURLcode) throws(HTTPClientFault) {
        guard code == CURLE_OK else { throw HTTPClientFault(.init(code), String(cString: curl_easy_strerror(code))) }
    }

    // MARK: While it is under way

    fileprivate func mayBegin() -> Bool {
        guard let mayBegin = order.request.mayBegin, !mayBegin() else {
            hasBegun = true
            // A repeated attempt may be a new connection, too.
            hasWokenOthers = false
            return true
        }
        // The server may have read an earlier attempt before the connection ended.
        objection =
            hasBegun
            ? HTTPClientFault(.broken, "the kept connection was dead, and the request may not be sent again")
            : HTTPClientFault(.withdrawn, "the request may not be sent any more")
        return false
    }

    fileprivate func takeHead(_ line: UnsafeRawBufferPointer) -> Bool {
        headBytes += line.count
        guard headBytes <= Self.maxHeadBytes else {
            objection = HTTPClientFault(.tooLarge, "the head of the answer is larger than \(Self.maxHeadBytes) bytes")
            return false
        }
        let text = String(decoding: line, as: UTF8.self)
        // An interim answer (100, 103) has its own head; the last head counts.
        if text.hasPrefix("HTTP/") { headers = [] }
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return true }
        let name = String(text[..<colon])
        guard !name.hasPrefix("HTTP/") else { return true }
        headers.append(HTTPClient.Header(name, String(trimmed(text[text.utf8.index(after: colon)...]))))
        return true
    }

    fileprivate func takeBody(_ piece: UnsafeRawBufferPointer) -> Bool {
        guard body.count + piece.count <= maxBodyBytes else {
            objection = HTTPClientFault(.tooLarge, "the answer is larger than \(maxBodyBytes) bytes")
            return false
        }
        body.append(contentsOf: piece)
        return true
    }

    // MARK: After

    func end(_ code: CURLcode) {
        if let objection { return end(.failure(objection)) }
        guard code == CURLE_OK else {
            let said = String(cString: errorText)
            let detail = said.isEmpty ? String(cString: curl_easy_strerror(code)) : said
            let kind = HTTPClientFault.Kind(code)
            // The library could not connect for a retry; a server may have read the first attempt.
            let isOfSecondTry = hasBegun && [.nameNotFound, .notConnected, .tls].contains(kind)
            return end(.failure(HTTPClientFault(isOfSecondTry ? .broken : kind, detail)))
        }
        let status = perennial_curl_number(easy, CURLINFO_RESPONSE_CODE)
        end(.success(HTTPClient.Response(status: status, headers: headers, body: body)))
    }

    func end(_ result: Result<HTTPClient.Response, HTTPClientFault>) { order.completion(result) }
}

/// A token of RFC 9110: the form of methods and header names.
private func isToken(_ text: String) -> Bool {
    !text.isEmpty
        && text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"):
                true
            default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
        }
}

private func isOneLine(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }

private func trimmed(_ text: Substring) -> Substring {
    let blanks: Set<UInt8> = [0x20, 0x09, 0x0D, 0x0A]
    let start = text.utf8.firstIndex { !blanks.contains($0) } ?? text.endIndex
    guard let last = text.utf8.lastIndex(where: { !blanks.contains($0) }) else { return text[start..<start] }
    return text[start...last]
}

// Top-level functions: a closure could inherit an actor's isolation, and would trap when C calls it on its own thread.

private func askLeave(
    _ context: UnsafeMutableRawPointer?, _: UnsafeMutablePointer<CChar>?, _: UnsafeMutablePointer<CChar>?, _: Int32,
    _: Int32
) -> Int32 {
    let transfer = Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
    return transfer.mayBegin() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}

private func takeHeadLine(
    _ bytes: UnsafeMutablePointer<CChar>?, _ one: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    let transfer = Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
    // Returning anything but the count ends the transfer.
    return transfer.takeHead(UnsafeRawBufferPointer(start: bytes, count: one * count)) ? one * count : -1
}

private func takeBodyPiece(
    _ bytes: UnsafeMutablePointer<CChar>?, _ one: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    let transfer = Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
    return transfer.takeBody(UnsafeRawBufferPointer(start: bytes, count: one * count)) ? one * count : -1
}
