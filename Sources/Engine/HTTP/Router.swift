// Finds the handler for a method and a path.

/// A table of routes. Unknown paths get 404. Other methods of a known path get 405 with `Allow`. A route for GET also
/// answers HEAD.
public struct Router: HTTPHandler {
    public typealias Answer = @Sendable (HTTPRequest, Responder) -> Void
    /// Checks the head of a request of a known path and method: token, media type.
    public typealias Check = @Sendable (HTTPRequest) -> HTTPResponse?

    private struct Route {
        let segments: [Substring]
        let method: String
        let check: Check?
        let answer: Answer
    }

    private var routes: [Route] = []
    private let admit: Check?

    /// `admit` is called first, before path and method are checked: a client that it refuses learns nothing about the
    /// routes.
    public init(admit: Check? = nil) {
        self.admit = admit
    }

    /// `pattern` is a path; a segment `*` matches any one segment that is not empty. If two routes match, the first is
    /// used.
    public mutating func add(_ method: String, _ pattern: String, check: Check? = nil, answer: @escaping Answer) {
        precondition(pattern.hasPrefix("/"), "a route begins with /: \(pattern)")
        routes.append(Route(segments: segments(of: pattern), method: method, check: check, answer: answer))
    }

    /// For answers that need no waiting.
    public mutating func get(_ pattern: String, _ answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse) {
        add("GET", pattern) { request, responder in responder.respond(answer(request)) }
    }

    public func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? {
        if let refusal = admit?(head) { return refusal }
        switch find(head) {
        case .success(let route): return route.check?(head)
        case .failure(let miss): return miss.response
        }
    }

    public func handle(_ request: HTTPRequest, _ responder: Responder) {
        switch find(request) {
        case .success(let route): route.answer(request, responder)
        case .failure(let miss): responder.respond(miss.response)
        }
    }

    private struct Miss: Error {
        let response: HTTPResponse
    }

    private func find(_ request: HTTPRequest) -> Result<Route, Miss> {
        let path = segments(of: request.path)
        let known = routes.filter { matches($0.segments, path) }
        guard !known.isEmpty else { return .failure(Miss(response: .text(404, "not found"))) }
        let method = request.method == "HEAD" && !known.contains { $0.method == "HEAD" } ? "GET" : request.method
        if let route = known.first(where: { $0.method == method }) { return .success(route) }
        var allowed = Set(known.map(\.method))
        if allowed.contains("GET") { allowed.insert("HEAD") }
        var response = HTTPResponse.text(405, "method not allowed")
        response.headers.add("Allow", allowed.sorted().joined(separator: ", "))
        return .failure(Miss(response: response))
    }

    private func segments(of path: String) -> [Substring] {
        // Uses bytes: splitting a long path by characters would cost more than all other work for its request.
        path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { Substring($0) }
    }

    private func matches(_ pattern: [Substring], _ path: [Substring]) -> Bool {
        // Compares bytes: == would also accept other spellings that Unicode treats as equal.
        pattern.count == path.count
            && zip(pattern, path).allSatisfy { $0 == "*" ? !$1.isEmpty : $0.utf8.elementsEqual($1.utf8) }
    }
}
