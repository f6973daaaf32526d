// One connection and the request on it.

import CMicroHTTPD
import CPlatform
import Glibc
import Platform
import Synchronization
import Telemetry

/// Unchecked: libmicrohttpd locks where it matters. Used on the connection's own thread, and for resuming while the
/// connection is suspended, when nobody else touches it.
struct ConnectionHandle: @unchecked Sendable {
    let pointer: OpaquePointer
}

/// Requests on a connection come one after the other, so there is one object for all of them.
///
/// `state` is what three parties share: the thread of the connection, whoever answers, and the sweeper.
final class Connection: Sendable {
    enum Phase {
        /// Between two requests. `received`: bytes of the socket so far; more of them are the next request.
        case idle(since: ContinuousClock.Instant, received: Int64)
        /// From the first byte (of a new connection: from its start) to the end of the body. `received`: bytes before it.
        case reading(since: ContinuousClock.Instant, received: Int64)
        /// The handler has it.
        case held(isSuspended: Bool)
        /// The handler has answered; the thread of the connection will send.
        case answered(HTTPResponse)
        /// `received`: bytes of the socket before the answer, which the client may follow up before we hear that it has it.
        case sending(since: ContinuousClock.Instant, received: Int64)
        /// Shut down by us; what else comes of it does not matter.
        case cut
    }

    struct State {
        /// nil: closed, and the number may belong to somebody else already.
        var socket: Int32?
        var phase: Phase
        var target = ""
        /// Where it begins and ends for C, in the buffer of the connection.
        var targetStart: UInt = 0
        var targetEnd: UInt = 0
        /// nil until the head is there.
        var request: HTTPRequest?
        var body: [UInt8] = []
        /// Of the server's budget, for the body until the request has ended; whoever was given the body has it until then.
        var reservedBytes = 0
        /// What the head announced; 0 when it announced nothing.
        var declaredBytes = 0
        var isChunked = false
        /// An answer that waits until the body, of no use any more, has come in.
        var refusal: HTTPResponse?
        var discardedBytes = 0

        var received: Int64 { socket.map { perennial_received_bytes($0) } ?? -1 }

        /// Something came, and no request line was found in it.
        /// - Parameter farewell: bytes that a client may send to say that it closes, after it has had an answer.
        func diedUnread(received: Int64, farewell: Int64) -> Bool {
            switch phase {
            case .reading(_, let before), .idle(_, let before):
                target.isEmpty && received > before + (before > 0 ? farewell : 0)
            default: false
            }
        }
    }

    /// Set aside with the first byte of a body that announces as much: a notification fits, and is not moved while it comes
    /// in. The rest of a larger one is set aside when so much has come. An announcement alone gets nothing.
    private static let firstBodyBytes = 32 << 10
    /// The largest alert of TLS 1.2 and 1.3 that only says "close": 5 bytes of head, 16 of a vector, 48 of padding and hash.
    private static let farewellOfTLS: Int64 = 69

    /// For a whole body of a sender who is nobody in particular, when places are scarce.
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

    /// `target` lies in the buffer of the connection.
    func requestLine(target: UnsafePointer<CChar>) {
        state.withLock { state in
            state.target = String(cString: target)
            state.targetStart = UInt(bitPattern: target)
            state.targetEnd = UInt(bitPattern: target + strlen(target))
            if case .idle(_, let received) = state.phase { state.phase = .reading(since: .now, received: received) }
        }
    }

    /// `line` is the method, where the head begins in the buffer of the connection; the version lies there, too.
    func head(line: UnsafePointer<CChar>, version: UnsafePointer<CChar>) -> MHD_Result {
        let method = String(cString: line)
        let (target, targetStart, targetEnd) = state.withLock { ($0.target, $0.targetStart, $0.targetEnd) }
        let received = ReceivedHeaders(of: handle, head: line, version: version)
        let headers = received.headers
        let request = HTTPRequest(method: method, target: target, headers: headers, peer: peer)
        state.withLock { $0.request = request }
        guard perennial_httpd_head_bytes(handle.pointer) <= core.configuration.maxHeadBytes else {
            return refuse(
                .headTooLarge, refusal(431, "the head is larger than \(core.configuration.maxHeadBytes) bytes"))
        }
        let framing: Framing
        do throws(Framing.Fault) {
            guard !received.hasFoldedLine else { throw Framing.Fault.folded }
            guard !received.hasHiddenBytes else { throw Framing.Fault.value }
            // Before and behind the target stood one blank. Where there is more, the method or the target goes on behind a zero
            // byte.
            guard UInt(bitPattern: line + strlen(line)) + 1 == targetStart else { throw Framing.Fault.method }
            guard version.pointee == 0 || UInt(bitPattern: version) == targetEnd + 1 else { throw Framing.Fault.target }
            framing = try Framing(
                method: method, version: String(cString: version), target: target, headers: headers)
        } catch {
            return refuse(.malformed, refusal(error == .version ? 505 : 400, error.rawValue))
        }
        guard !framing.isChunked || core.configuration.takesChunks else {
            return refuse(.malformed, refusal(411, "Content-Length is needed here"))
        }
        state.withLock { $0.isChunked = framing.isChunked }
        guard let answer = core.handler.earlyAnswer(to: request) ?? tooLarge(framing) else {
            // Closed with it: a body that is read for nothing keeps its connection, and each of those costs all others time.
            if let response = noRoom(framing) { return send(response, thenClose: true) }
            state.withLock { $0.declaredBytes = framing.declaredBytes ?? 0 }
            return .YES
        }
        // Who waits for "100 Continue" has not sent the body yet; who announces too much is not waited for.
        let isAwaited = framing.hasBody && headers["Expect"] != nil
        if isAwaited || (framing.declaredBytes ?? 0) > core.configuration.maxDiscardedBytes {
            return send(answer, thenClose: true)
        }
        // Not sent here even when there is no body: after an answer to a head the library reads nothing more from the
        // connection, without saying so to the client.
        state.withLock { $0.refusal = answer }
        return .YES
    }

    /// A request whose body cannot be found for certain: the connection ends with it.
    private func refuse(_ cause: ServerMetrics.Cause, _ response: HTTPResponse) -> MHD_Result {
        core.metrics.count(cause)
        return send(response, thenClose: true)
    }

    /// Why a body is not taken any further; nil: there is room for `bytes` of it in all.
    private func objection(_ state: inout State, to bytes: Int) -> HTTPResponse? {
        guard bytes <= core.configuration.maxBodyBytes else { return tooLarge() }
        guard reserve(bytes, &state) else { return buffersFull() }
        return nil
    }

    /// Why a large body that is announced need not be sent.
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
            if state.refusal == nil, let refusal = objection(&state, to: state.body.count + bytes.count) {
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

    /// The body is there, or a suspended request goes on.
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

    /// Every 503 says when to come again.
    private func unavailable(_ words: String) -> HTTPResponse {
        var response = refusal(503, words)
        if response.headers["Retry-After"] == nil {
            response.headers.add("Retry-After", String(core.configuration.retryAfterSeconds))
        }
        return response
    }

    private func ask(_ request: HTTPRequest) -> MHD_Result {
        // The responder is not kept here: when the handler lets go of it, it answers for itself.
        core.handler.handle(request, Responder(self))
        var isCut = false
        let answer: HTTPResponse? = state.withLock { state in
            guard case .held = state.phase else {
                if case .answered(let response) = state.phase { return response }
                if case .cut = state.phase { isCut = true }
                return nil
            }
            // Suspended under the lock: an answer comes either before, and is seen above, or after, and resumes.
            MHD_suspend_connection(handle.pointer)
            state.phase = .held(isSuspended: true)
            return nil
        }
        if isCut { return .NO }
        return answer.map { send($0) } ?? .YES
    }

    private func send(_ response: HTTPResponse, thenClose: Bool = false) -> MHD_Result {
        let isChunked: Bool? = state.withLock { state in
            if case .cut = state.phase { return nil }
            state.phase = .sending(since: .now, received: state.received)
            return state.isChunked
        }
        guard let isChunked else { return .NO }
        // The library ends a chunk's line at a bare LF too (0.9.75), and reads over a CR in an extension. Somebody before this
        // server may see the end of such a body elsewhere, so what follows on the connection is nobody's request.
        let closes = thenClose || response.endsConnection || isChunked || core.isDraining
        if queue(response, closes: closes) { return .YES }
        core.metrics.count(.unanswered)
        if core.isFirstUnsent {
            core.logger.error(
                "an answer cannot be sent; this is told once and counted from now on",
                ["server": .string(core.configuration.name), "status": .integer(response.status)])
        }
        return queue(refusal(500, "internal error"), closes: closes) ? .YES : .NO
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

    /// `status` is that of the library's own answer when the request never came to us.
    func completed(status: Int) {
        state.withLock { state in
            if case .reading = state.phase, status >= 400 {
                core.metrics.count(status: status)
                core.metrics.count(status == 431 || status == 414 ? .headTooLarge : .malformed)
            }
            state.target = ""
            state.request = nil
            state.refusal = nil
            dropBody(&state)
            state.declaredBytes = 0
            state.isChunked = false
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

    /// False when nothing waits for an answer. It cannot reach another request than the one meant: the next one does not
    /// begin before this one is answered, each responder answers once, and after `giveUp` the connection closes.
    func answer(_ response: HTTPResponse) -> Bool {
        state.withLock { state in
            guard case .held(let isSuspended) = state.phase else { return false }
            state.phase = .answered(response)
            core.freeSlot()
            // Under the lock, so that the end of the server, which takes it too, comes before or after, not between.
            if isSuspended { MHD_resume_connection(handle.pointer) }
            return true
        }
    }

    /// False when nothing waits for an answer.
    func hangUp() -> Bool {
        state.withLock { state in
            guard case .held(let isSuspended) = state.phase else { return false }
            cut(&state, saying: nil)
            core.freeSlot()
            // The thread of the connection then finds it cut.
            if isSuspended { MHD_resume_connection(handle.pointer) }
            return true
        }
    }

    func answerDropped() {
        let path = state.withLock { $0.request?.path ?? "" }
        guard answer(refusal(500, "internal error")) else { return }
        core.metrics.count(.unanswered)
        core.logger.error(
            "a request was dropped without an answer and got 500; this is a defect of the handler",
            ["server": .string(core.configuration.name), "path": .string(path)])
    }

    /// The deadline of the stop has passed: what is held is answered for the handler.
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
                    cut(&state, saying: refusal(408, "the request was not complete in time"))
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

    /// How long a request may take to come, as far as it is.
    private func limit(of state: State, receivedBefore: Int64, _ isCrowded: Bool) -> Duration {
        let configuration = core.configuration
        if state.request != nil { return configuration.requestDeadline }
        if isCrowded, !isPreferred { return min(configuration.requestDeadline, configuration.crowdedDeadline) }
        let isNew = receivedBefore == 0 && state.target.isEmpty
        return min(
            configuration.requestDeadline, configuration.headDeadline,
            isNew ? configuration.greetingDeadline : configuration.headDeadline)
    }

    /// Since when the connection takes a place that others need more: nothing has come, or no whole head or body for a while. nil:
    /// a request is on it.
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

    /// Makes room for others. Nothing happens when a request has come meanwhile.
    func cutIfSpare() {
        state.withLock { state in
            if spareSince(state) != nil { cut(&state, saying: nil) }
        }
    }

    /// Shuts the socket down; the thread of the connection notices and closes it. `response` is written past the library,
    /// which takes no answer before the request is complete; only in plaintext, and only if the socket takes it at once.
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

struct ReceivedHeaders {
    private(set) var headers = HTTPHeaders()
    private(set) var hasFoldedLine = false
    /// A line goes on behind a zero byte, where C does not see it but others would. One that begins with zero bytes ends the head
    /// for the library (0.9.75), and not for others.
    private(set) var hasHiddenBytes = false
    /// Where the version or the last value ended, for C.
    private var lastEnd: UnsafePointer<CChar>?

    /// `head` is where the head begins in the buffer; the version, unless it is empty, and all lines lie there too.
    init(of handle: ConnectionHandle, head: UnsafePointer<CChar>, version: UnsafePointer<CChar>) {
        lastEnd = version.pointee == 0 ? nil : version + strlen(version)
        withUnsafeMutablePointer(to: &self) { received in
            _ = MHD_get_connection_values(handle.pointer, .HEADER_KIND, appendHeader, received)
        }
        checkGap(to: head + perennial_httpd_head_bytes(handle.pointer), lineEnds: 2)
    }

    /// Between two lines there is one line's end, of whose CR and LF the library has made zero bytes, and nothing but blanks; after
    /// the last line there is the end of the empty one too.
    private mutating func checkGap(to next: UnsafePointer<CChar>, lineEnds: Int) {
        guard var place = lastEnd else { return }
        var bytes = 0
        while place < next {
            switch place.pointee {
            case 0x20, 0x09: break
            case 0, 0x0D, 0x0A: bytes += 1
            default:
                hasHiddenBytes = true
                return
            }
            place += 1
        }
        if bytes > 2 * lineEnds { hasHiddenBytes = true }
    }

    fileprivate mutating func add(_ name: UnsafePointer<CChar>, _ value: UnsafePointer<CChar>?) {
        checkGap(to: name, lineEnds: 1)
        headers.add(String(cString: name), value.map { String(cString: $0) } ?? "")
        // A line that goes on in the next one (0.9.75): its continuation is taken for the end of the *name*, which is copied
        // to another place. Of all other lines both lie where they were received, with nothing but blanks, and the colon that
        // became NUL, in between. So "Transfer-Encoding:\r\n chunked" would be no transfer encoding here, but one elsewhere.
        guard let value else { return }
        var end = name + strlen(name)
        while end < value, [0, 0x20, 0x09].contains(end.pointee) { end += 1 }
        if end != value { hasFoldedLine = true }
        lastEnd = value + strlen(value)
    }
}

private func appendHeader(
    context: UnsafeMutableRawPointer?, kind: MHD_ValueKind, name: UnsafePointer<CChar>?, value: UnsafePointer<CChar>?
) -> MHD_Result {
    guard let context, let name else { return .NO }
    context.assumingMemoryBound(to: ReceivedHeaders.self).pointee.add(name, value)
    return .YES
}
