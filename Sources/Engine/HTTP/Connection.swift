// One connection and the request on it.

import CMicroHTTPD
import CPlatform
import Glibc
import Platform
import Synchronization
import Telemetry

/// Unchecked: libmicrohttpd does the locking that is needed. Used on the connection's own thread. Other threads use it
/// only to resume a suspended connection, which nobody else touches at that time.
struct ConnectionHandle: @unchecked Sendable {
    let pointer: OpaquePointer
}

/// Requests on a connection follow each other, so one object serves all of them.
///
/// `state` is shared by three parties: the thread of the connection, the code that answers, and the sweeper.
final class Connection: Sendable {
    enum Phase {
        /// Between two requests. `received`: bytes read from the socket so far; any further byte belongs to the next
        /// request.
        case idle(since: ContinuousClock.Instant, received: Int64)
        /// From the first byte of a request (on a new connection: from its start) to the end of the body. `received`:
        /// bytes read before the request.
        case reading(since: ContinuousClock.Instant, received: Int64)
        /// The handler is working on the request.
        case held(isSuspended: Bool)
        /// The handler has answered, and the thread of the connection will send the answer.
        case answered(HTTPResponse)
        /// `received`: bytes read before the answer. The client may send its next request before we hear that the
        /// answer arrived.
        case sending(since: ContinuousClock.Instant, received: Int64)
        /// We have shut the socket down; whatever else arrives on it is ignored.
        case cut
    }

    struct State {
        /// nil: the socket is closed, and its number may be in use for something else.
        var socket: Int32?
        var phase: Phase
        var target = ""
        /// Addresses of the first byte of the target and of its NUL, in the buffer of the connection.
        var targetStart: UInt = 0
        var targetEnd: UInt = 0
        /// nil: there is no request line yet, or the library is one that does not need this.
        var headEnd: RawHead.End?
        /// nil until the head is complete.
        var request: HTTPRequest?
        var body: [UInt8] = []
        /// Bytes reserved in the server's budget for the body, until the request ends. If the body was passed on, its
        /// receiver holds them until then.
        var reservedBytes = 0
        /// The length that the head announced; 0 if it announced none.
        var declaredBytes = 0
        var isChunked = false
        /// The library has taken the end of a chunk's line for a byte of the chunk.
        var isMisread = false
        /// An answer that is sent after the rest of the body, which is discarded, has arrived.
        var refusal: HTTPResponse?
        var discardedBytes = 0

        var received: Int64 { socket.map { perennial_received_bytes($0) } ?? -1 }

        /// Bytes arrived, but no request line was found in them.
        /// - Parameter farewell: the most bytes that a client may send, after an answer, to say that it closes.
        func diedUnread(received: Int64, farewell: Int64) -> Bool {
            switch phase {
            case .reading(_, let before), .idle(_, let before):
                target.isEmpty && received > before + (before > 0 ? farewell : 0)
            default: false
            }
        }
    }

    /// Reserved with the first byte of a body that is announced to be at least as large. A notification fits, so it is
    /// not moved while it arrives. The rest of a larger body is reserved once this much has arrived. An announcement
    /// alone reserves nothing.
    private static let firstBodyBytes = 32 << 10
    /// Size of the largest alert of TLS 1.2 and 1.3 that only says "close": 5 bytes of head, 16 of a vector, 48 of
    /// padding and hash.
    private static let farewellOfTLS: Int64 = 69

    /// Time limit for the complete body of a sender that is not preferred, when connections are scarce.
    private static let patienceWithBodies: Duration = .seconds(2)

    let core: ServerCore
    let handle: ConnectionHandle
    let peer: IPAddress?
    let isPreferred: Bool
    let state: Mutex<State>

    init(_ core: ServerCore, _ handle: ConnectionHandle) {
        self.core = core
        self.handle = handle
        peer = perennial_httpd_peer(handle.pointer).flatMap(IPAddress.init)
        isPreferred = peer.map(core.configuration.prefers) ?? false
        state = Mutex(State(socket: perennial_httpd_socket(handle.pointer), phase: .reading(since: .now, received: 0)))
    }

    var hasHead: Bool { state.withLock { $0.request != nil } }

    // MARK: On the thread of the connection

    /// `target` points into the buffer of the connection.
    func requestLine(target: UnsafePointer<CChar>) {
        state.withLock { state in
            state.target = String(cString: target)
            state.targetStart = UInt(bitPattern: target)
            state.targetEnd = UInt(bitPattern: target + strlen(target))
            state.headEnd = RawHead.isOverwritten ? RawHead.end(after: target) : nil
            if case .idle(_, let received) = state.phase { state.phase = .reading(since: .now, received: received) }
        }
    }

    /// `line` is the method, the first byte of the head in the buffer of the connection. `version` points into the same
    /// buffer.
    func head(line: UnsafePointer<CChar>, version: UnsafePointer<CChar>) -> MHD_Result {
        let method = String(cString: line)
        let (target, targetStart, targetEnd, end) = state.withLock {
            ($0.target, $0.targetStart, $0.targetEnd, $0.headEnd)
        }
        let received = ReceivedHeaders(of: handle, head: line, version: version)
        let headers = received.headers
        let request = HTTPRequest(method: method, target: target, headers: headers, peer: peer)
        state.withLock { $0.request = request }
        let headBytes = perennial_httpd_head_bytes(handle.pointer)
        guard headBytes <= core.configuration.maxHeadBytes else {
            return refuse(
                .headTooLarge, refusal(431, "the head is larger than \(core.configuration.maxHeadBytes) bytes"))
        }
        let framing: Framing
        do throws(Framing.Fault) {
            guard !received.hasFoldedLine else { throw Framing.Fault.folded }
            guard !received.hasHiddenBytes else { throw Framing.Fault.value }
            guard end?.allows(line + headBytes) ?? true else { throw Framing.Fault.end }
            guard !RawHead.isOverwritten || !RawHead.hasLines(before: line) else { throw Framing.Fault.start }
            // Exactly one blank surrounds the target on each side. If there is more, the method or the target continues
            // behind a zero byte.
            guard UInt(bitPattern: line + strlen(line)) + 1 == targetStart else { throw Framing.Fault.method }
            guard version.pointee == 0 || UInt(bitPattern: version) == targetEnd + 1 else { throw Framing.Fault.target }
            framing = try Framing(
                method: method, version: String(cString: version), target: target, headers: headers)
        } catch {
            return refuse(.malformed, refusal(error == .version ? 505 : 400, error.rawValue))
        }
        guard !framing.isChunked || core.configuration.takesChunks else {
            return refuse(.malformed, refusal(411, "a Content-Length header is required"))
        }
        state.withLock { $0.isChunked = framing.isChunked }
        guard let answer = core.handler.earlyAnswer(to: request) ?? tooLarge(framing) else {
            // The connection closes with it: a body that is read only to be discarded keeps its connection open, and
            // every open connection slows all requests down.
            if let response = noRoom(framing) { return send(response, thenClose: true) }
            state.withLock { $0.declaredBytes = framing.declaredBytes ?? 0 }
            return .YES
        }
        // A client that waits for "100 Continue" has not sent its body yet. A body that is announced too large is not
        // waited for.
        let isAwaited = framing.hasBody && headers["Expect"] != nil
        if isAwaited || (framing.declaredBytes ?? 0) > core.configuration.maxDiscardedBytes {
            return send(answer, thenClose: true)
        }
        // Not sent here even if there is no body: after an answer to a head the library reads nothing more from the
        // connection, and does not tell the client so.
        state.withLock { $0.refusal = answer }
        return .YES
    }

    /// For a request whose body has no certain end: the connection closes after the answer.
    private func refuse(_ cause: ServerMetrics.Cause, _ response: HTTPResponse) -> MHD_Result {
        core.metrics.count(cause)
        return send(response, thenClose: true)
    }

    /// Why the rest of a body is not accepted; nil: `piece` was read correctly, and there is room for it.
    private func objection(_ state: inout State, to piece: UnsafeRawBufferPointer) -> HTTPResponse? {
        if Self.misreadsExtensions, state.isChunked, beginsWithEndOfLine(piece) {
            state.isMisread = true
            core.metrics.count(.malformed)
            return refusal(400, "a chunk has an extension")
        }
        let bytes = state.body.count + piece.count
        guard bytes <= core.configuration.maxBodyBytes else { return tooLarge() }
        guard reserve(bytes, &state) else { return buffersFull() }
        return nil
    }

    private static let misreadsExtensions = Libmicrohttpd.version == "1.0.1"

    /// If a chunk has an extension, libmicrohttpd 1.0.1 takes the LF of the chunk's line for the first byte of the chunk,
    /// and ends the chunk one byte too early. It hands over its own buffer: before the first byte of a chunk that it has
    /// read correctly, there is an LF or what the head has left there, but never a CR.
    private func beginsWithEndOfLine(_ piece: UnsafeRawBufferPointer) -> Bool {
        guard let start = piece.baseAddress, piece.first == 0x0A else { return false }
        return (start - 1).load(as: UInt8.self) == 0x0D
    }

    /// Why the client need not send a large body that it has announced.
    private func noRoom(_ framing: Framing) -> HTTPResponse? {
        guard let bytes = framing.declaredBytes, bytes > Self.firstBodyBytes,
            !core.bodies.hasRoom(for: bytes, isLarge: true, isPreferred: isPreferred)
        else { return nil }
        return buffersFull()
    }

    private func buffersFull() -> HTTPResponse {
        core.metrics.count(.buffersFull)
        return unavailable("too much is being received")
    }

    private func reserve(_ bytes: Int, _ state: inout State) -> Bool {
        guard bytes > state.reservedBytes else { return true }
        let isLarge = bytes > Self.firstBodyBytes
        let announced = isLarge ? state.declaredBytes : min(state.declaredBytes, Self.firstBodyBytes)
        let wanted = min(max(bytes, 2 * state.reservedBytes, announced), core.configuration.maxBodyBytes)
        guard
            core.bodies.take(
                wanted - state.reservedBytes, isLarge: wanted > Self.firstBodyBytes, isPreferred: isPreferred)
        else { return false }
        state.body.reserveCapacity(wanted)
        state.reservedBytes = wanted
        return true
    }

    private func dropBody(_ state: inout State) {
        state.body = []
        core.bodies.giveBack(state.reservedBytes)
        state.reservedBytes = 0
    }

    private func tooLarge(_ framing: Framing) -> HTTPResponse? {
        guard let bytes = framing.declaredBytes, bytes > core.configuration.maxBodyBytes else { return nil }
        return tooLarge()
    }

    private func tooLarge() -> HTTPResponse {
        core.metrics.count(.bodyTooLarge)
        return refusal(413, "the body is larger than \(core.configuration.maxBodyBytes) bytes")
    }

    func take(_ bytes: UnsafeRawBufferPointer) -> MHD_Result {
        let configuration = core.configuration
        return state.withLock { state in
            if case .cut = state.phase { return .NO }
            if state.refusal == nil, let refusal = objection(&state, to: bytes) {
                state.refusal = refusal
                state.discardedBytes = state.body.count
                dropBody(&state)
            }
            guard let refusal = state.refusal else {
                state.body.append(contentsOf: bytes)
                return .YES
            }
            state.discardedBytes += bytes.count
            guard state.discardedBytes <= configuration.maxDiscardedBytes else {
                // An answer cannot be queued in the middle of a body.
                cut(&state, saying: refusal)
                return .NO
            }
            return .YES
        }
    }

    /// The body is complete, or a suspended request continues.
    func complete() -> MHD_Result {
        enum Step {
            case close
            case send(HTTPResponse)
            case ask(HTTPRequest)
        }
        let step: Step = state.withLock { state in
            switch state.phase {
            case .answered(let response): return .send(response)
            case .reading:
                if let refusal = state.refusal { return .send(refusal) }
                guard var request = state.request else { return .close }
                guard !core.hasGivenUp else { return .send(stopped()) }
                guard core.takeSlot() else { return .send(overloaded()) }
                request.body = state.body
                state.body = []
                state.phase = .held(isSuspended: false)
                return .ask(request)
            default: return .close
            }
        }
        switch step {
        case .close: return .NO
        case .send(let response): return send(response)
        case .ask(let request): return ask(request)
        }
    }

    private func overloaded() -> HTTPResponse {
        core.metrics.count(.overloaded)
        return unavailable("too many requests are waiting")
    }

    private func stopped() -> HTTPResponse {
        core.metrics.count(.stopped)
        return unavailable("shutting down")
    }

    private func refusal(_ status: Int, _ words: String) -> HTTPResponse { core.configuration.refusal(status, words) }

    /// Adds `Retry-After`, which every 503 has.
    private func unavailable(_ words: String) -> HTTPResponse {
        var response = refusal(503, words)
        if response.headers["Retry-After"] == nil {
            response.headers.add("Retry-After", String(core.configuration.retryAfterSeconds))
        }
        return response
    }

    private func ask(_ request: HTTPRequest) -> MHD_Result {
        // The responder is not kept here: if the handler drops it without answering, it answers by itself.
        core.handler.handle(request, Responder(self))
        var isCut = false
        let answer: HTTPResponse? = state.withLock { state in
            guard case .held = state.phase else {
                if case .answered(let response) = state.phase { return response }
                if case .cut = state.phase { isCut = true }
                return nil
            }
            // Suspended under the lock: an answer comes either before (the code above sees it) or after (it resumes the
            // connection).
            MHD_suspend_connection(handle.pointer)
            state.phase = .held(isSuspended: true)
            return nil
        }
        if isCut { return .NO }
        return answer.map { send($0) } ?? .YES
    }

    private func send(_ response: HTTPResponse, thenClose: Bool = false) -> MHD_Result {
        let isLast: Bool? = state.withLock { state in
            if case .cut = state.phase { return nil }
            state.phase = .sending(since: .now, received: state.received)
            return hasDoubtfulEnd(state)
        }
        guard let isLast else { return .NO }
        let closes = thenClose || response.endsConnection || isLast || core.isDraining
        if queue(response, closes: closes) { return .YES }
        core.metrics.count(.unanswered)
        if core.isFirstUnsent {
            core.logger.error(
                "an answer could not be sent; this is logged once, further ones are only counted",
                ["server": .string(core.configuration.name), "status": .integer(response.status)])
        }
        return queue(refusal(500, "internal error"), closes: closes) ? .YES : .NO
    }

    /// A proxy before this server may see another end of the request. Then what follows on the connection must not be read
    /// as a request. The library (0.9.75) also ends a chunk's line at a bare LF, and ignores a CR in an extension. Of a head
    /// of which a part came later nobody can say how it ended.
    private func hasDoubtfulEnd(_ state: State) -> Bool {
        if case .behind = state.headEnd { return true }
        return state.isChunked
    }

    private func queue(_ response: HTTPResponse, closes: Bool) -> Bool {
        let made = response.body.withUnsafeBytes { body in
            MHD_create_response_from_buffer(
                body.count, UnsafeMutableRawPointer(mutating: body.baseAddress), .RESPMEM_MUST_COPY)
        }
        guard let made else { return false }
        defer { MHD_destroy_response(made) }
        for field in response.headers.fields {
            guard MHD_add_response_header(made, field.name, field.value) == .YES else { return false }
        }
        if closes, MHD_add_response_header(made, "Connection", "close") != .YES { return false }
        guard MHD_queue_response(handle.pointer, UInt32(response.status), made) == .YES else { return false }
        core.metrics.count(status: response.status)
        return true
    }

    /// `status` is that of the library's own answer if the request never reached us.
    func completed(status: Int) {
        state.withLock { state in
            if case .reading = state.phase, status >= 400 {
                core.metrics.count(status: status)
                if !state.isMisread { core.metrics.count(status == 431 || status == 414 ? .headTooLarge : .malformed) }
            }
            state.target = ""
            state.headEnd = nil
            state.request = nil
            state.refusal = nil
            dropBody(&state)
            state.declaredBytes = 0
            state.isChunked = false
            state.isMisread = false
            state.discardedBytes = 0
            if case .cut = state.phase { return }
            if case .sending(_, let received) = state.phase {
                state.phase = .idle(since: .now, received: received)
            } else {
                state.phase = .idle(since: .now, received: state.received)
            }
        }
    }

    func closed() {
        state.withLock { state in
            let farewell = core.identities == nil ? 0 : Self.farewellOfTLS
            if state.diedUnread(received: state.received, farewell: farewell) { core.metrics.count(.unreadable) }
            state.socket = nil
            dropBody(&state)
        }
    }

    // MARK: From any thread

    /// false: no request waits for an answer. The answer cannot go to another request than its own: the next request
    /// does not begin before this one is answered, each responder answers once, and after `giveUp` the connection
    /// closes.
    func answer(_ response: HTTPResponse) -> Bool {
        state.withLock { state in
            guard case .held(let isSuspended) = state.phase else { return false }
            state.phase = .answered(response)
            core.freeSlot()
            // Under the lock, so that the end of the server, which takes the lock too, comes before or after this and
            // not in between.
            if isSuspended { MHD_resume_connection(handle.pointer) }
            return true
        }
    }

    /// false: no request waits for an answer.
    func hangUp() -> Bool {
        state.withLock { state in
            guard case .held(let isSuspended) = state.phase else { return false }
            cut(&state, saying: nil)
            core.freeSlot()
            // The thread of the connection then sees that it was cut.
            if isSuspended { MHD_resume_connection(handle.pointer) }
            return true
        }
    }

    func answerDropped() {
        let path = state.withLock { $0.request?.path ?? "" }
        guard answer(refusal(500, "internal error")) else { return }
        core.metrics.count(.unanswered)
        core.logger.error(
            "the handler dropped a request, and the server answered it with 500; this is a defect of the handler",
            ["server": .string(core.configuration.name), "path": .string(path)])
    }

    /// The deadline of the stop has passed: the server answers the requests that the handler has not answered.
    func giveUp() {
        if answer(unavailable("shutting down")) {
            core.metrics.count(.stopped)
        }
    }

    func sweep(at now: ContinuousClock.Instant, drainingSince: ContinuousClock.Instant?, isCrowded: Bool) {
        let configuration = core.configuration
        state.withLock { state in
            guard let socket = state.socket else { return }
            let received = perennial_received_bytes(socket)
            let drained = drainingSince.map { $0.duration(to: now) > configuration.drainGrace } ?? false
            switch state.phase {
            case .idle(let since, let before):
                if received > before {
                    state.phase = .reading(since: now, received: before)
                } else if drained && since.duration(to: now) > configuration.drainGrace
                    || since.duration(to: now) > configuration.idleTimeout
                {
                    cut(&state, saying: nil)
                }
            case .reading(let since, let before):
                if since.duration(to: now) > limit(of: state, receivedBefore: before, isCrowded) {
                    core.metrics.count(.timedOut)
                    cut(&state, saying: refusal(408, "the request did not arrive completely in time"))
                } else if drained && received == 0 {
                    cut(&state, saying: nil)
                }
            case .sending(let since, _) where since.duration(to: now) > configuration.sendDeadline:
                core.metrics.count(.timedOut)
                cut(&state, saying: nil)
            case .sending, .held, .answered, .cut: break
            }
        }
    }

    /// The time limit for receiving a request, by what has arrived of it.
    private func limit(of state: State, receivedBefore: Int64, _ isCrowded: Bool) -> Duration {
        let configuration = core.configuration
        if state.request != nil { return configuration.requestDeadline }
        if isCrowded, !isPreferred { return min(configuration.requestDeadline, configuration.crowdedDeadline) }
        let isNew = receivedBefore == 0 && state.target.isEmpty
        return min(
            configuration.requestDeadline, configuration.headDeadline,
            isNew ? configuration.greetingDeadline : configuration.headDeadline)
    }

    /// Since when the connection has used a place that other clients need more: nothing has arrived, or no complete
    /// head or body for a while. nil: there is a request on it.
    var spareSince: ContinuousClock.Instant? { state.withLock { spareSince($0) } }

    private func spareSince(_ state: State) -> ContinuousClock.Instant? {
        guard let socket = state.socket else { return nil }
        switch state.phase {
        case .idle(let since, let before): return perennial_received_bytes(socket) <= before ? since : nil
        case .reading(let since, let before) where state.request == nil:
            if perennial_received_bytes(socket) <= before { return since }
            return since.duration(to: .now) > core.configuration.crowdedDeadline ? since : nil
        case .reading(let since, _):
            return since.duration(to: .now) > Self.patienceWithBodies ? since : nil
        default: return nil
        }
    }

    /// The server has shut the socket down.
    var isCut: Bool {
        state.withLock { state in
            if case .cut = state.phase { true } else { false }
        }
    }

    /// Closes the connection to make room for others. Does nothing if a request has arrived meanwhile.
    func cutIfSpare() {
        state.withLock { state in
            if spareSince(state) != nil { cut(&state, saying: nil) }
        }
    }

    /// Shuts the socket down; the thread of the connection notices and closes it. `response` is written directly to the
    /// socket, because the library accepts no answer before the request is complete. It is written only in plaintext,
    /// and only if the socket accepts it at once.
    private func cut(_ state: inout State, saying response: HTTPResponse?) {
        state.phase = .cut
        guard let socket = state.socket else { return }
        if let response, core.configuration.identity == nil {
            core.metrics.count(status: response.status)
            var bytes = Array("HTTP/1.1 \(response.status) Refused\r\nConnection: close\r\n".utf8)
            for field in response.headers.fields { bytes += Array("\(field.name): \(field.value)\r\n".utf8) }
            bytes += Array("Content-Length: \(response.body.count)\r\n\r\n".utf8) + response.body
            _ = Glibc.send(socket, bytes, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        }
        shutdown(socket, Int32(SHUT_RDWR))
    }
}
