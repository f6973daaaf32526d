// One client's connection through the frame proxy. Belongs to the proxy's thread.

import Glibc
import Platform
import Synchronization

final class ProxyConnection {
    /// The limit of bytes queued for a side that does not read; beyond it the proxy stops reading from the other side.
    private static let backlogBytes = 8 << 20
    private static let readBytes = 64 << 10

    /// Why the next request has to wait.
    private enum Gate {
        case open
        case held(RequestHold, frame: [UInt8])
        case delayed(frame: [UInt8], until: Deadline)
    }

    private let desk: FrameProxy.Desk
    private var client: Descriptor?
    private var broker: Descriptor?
    private var fromClient = ByteQueue()
    private var toBroker = ByteQueue()
    private var fromBroker = ByteQueue()
    private var toClient = ByteQueue()
    private var gate = Gate.open
    /// Requests delayed by `setDistance`.
    private var underWay: [(frame: [UInt8], until: Deadline)] = []
    /// Released requests by correlation id, until the broker answers.
    private var awaited: [Int32: RequestHold] = [:]

    init(client: consuming Descriptor, broker: consuming Descriptor, desk: FrameProxy.Desk) {
        self.client = consume client
        self.broker = consume broker
        self.desk = desk
    }

    // MARK: What the loop asks

    var held: RequestHold? { if case .held(let hold, _) = gate { hold } else { nil } }

    var remainingDelay: Duration? {
        var remaining = underWay.first?.until.remaining
        if case .delayed(_, let until) = gate { remaining = min(remaining ?? until.remaining, until.remaining) }
        return remaining
    }

    var isFinished: Bool { clientNumber < 0 && brokerNumber < 0 }

    private var clientNumber: Int32 { client?.number ?? -1 }
    private var brokerNumber: Int32 { broker?.number ?? -1 }

    /// If true, the connection to the broker outlives the client.
    private var hasBusinessWithBroker: Bool {
        isGateClosed || !underWay.isEmpty || !awaited.isEmpty || !toBroker.isEmpty
    }

    private var isGateClosed: Bool { if case .open = gate { false } else { true } }

    /// Two entries, the client's first. poll(2) ignores entries with a negative number.
    var interests: [pollfd] {
        // One frame of the maximum size has to fit. A client behind a closed gate is still read, to notice when it
        // disconnects.
        let readsClient = fromClient.count <= frameLimitBytes + 4 && toBroker.count < Self.backlogBytes
        let readsBroker = toClient.count < Self.backlogBytes
        return [
            pollfd(fd: clientNumber, events: events(reads: readsClient, writes: !toClient.isEmpty), revents: 0),
            pollfd(fd: brokerNumber, events: events(reads: readsBroker, writes: !toBroker.isEmpty), revents: 0),
        ]
    }

    private func events(reads: Bool, writes: Bool) -> Int16 {
        Int16((reads ? POLLIN : 0) | (writes ? POLLOUT : 0))
    }

    // MARK: Progress

    func serve(clientEvents: Int16, brokerEvents: Int16) {
        let failed = Int16(POLLERR | POLLHUP | POLLNVAL)
        if clientEvents & (Int16(POLLIN) | failed) != 0 && !read(from: clientNumber, into: &fromClient) {
            closeClient()
        }
        if brokerEvents & (Int16(POLLIN) | failed) != 0 && !read(from: brokerNumber, into: &fromBroker) {
            closeBroker()
        }
        advance()
    }

    /// Moves all data as far as possible now.
    func advance() {
        do throws(NotKafka) {
            letArrive()
            openGateWhenDue()
            try takeRequests()
            try takeResponses()
        } catch {
            printMessage("frame proxy: \(error)")
            end("\(error)")
        }
        if !write(&toBroker, to: brokerNumber) { closeBroker() }
        if !write(&toClient, to: clientNumber) { closeClient() }
        if clientNumber < 0 && !hasBusinessWithBroker { broker = nil }
        if brokerNumber < 0 && toClient.isEmpty { client = nil }
    }

    private func openGateWhenDue() {
        guard case .delayed(let frame, let until) = gate, until.hasPassed else { return }
        gate = .open
        toBroker.append(frame: frame)
    }

    private func letArrive() {
        while let first = underWay.first, first.until.hasPassed {
            toBroker.append(frame: underWay.removeFirst().frame)
        }
    }

    private func takeRequests() throws(NotKafka) {
        while case .open = gate, let frame = try fromClient.takeFrame() {
            guard let request = KafkaRequest(frame: frame) else {
                toBroker.append(frame: frame)
                continue
            }
            let (holds, delay, distance) = desk.rules.withLock { rules in
                rules.counts[request.api, default: 0] += 1
                return (rules.holds, rules.delays[request.api], rules.distance)
            }
            if let hold = holds.first(where: { $0.takes(request) }) {
                desk.rules.withLock { $0.holds.removeAll { $0 === hold } }
                gate = .held(hold, frame: frame)
                if hold.clientSide == .cut { closeClient() }
            } else if let delay {
                gate = .delayed(frame: frame, until: Deadline(after: delay))
            } else if distance > .zero || !underWay.isEmpty {
                underWay.append((frame, Deadline(after: distance)))
            } else {
                toBroker.append(frame: frame)
            }
        }
    }

    private func takeResponses() throws(NotKafka) {
        while let frame = try fromBroker.takeFrame() {
            if !awaited.isEmpty, let correlationID = correlationID(of: frame) {
                awaited.removeValue(forKey: correlationID)?.answer(KafkaResponse(bytes: frame))
            }
            if clientNumber >= 0 { toClient.append(frame: frame) }
        }
    }

    private func correlationID(of frame: [UInt8]) -> Int32? {
        var reader = WireReader(frame)
        return try? reader.number()
    }

    // MARK: Orders

    /// The held request goes to the broker, followed by what came after it.
    func release() {
        guard case .held(let hold, let frame) = gate else { return }
        gate = .open
        if brokerNumber < 0 { return hold.end("the broker has closed the connection") }
        if let correlationID = KafkaRequest(frame: frame)?.correlationID { awaited[correlationID] = hold }
        toBroker.append(frame: frame)
    }

    /// Closes the client's side; the broker's side stays for a request that is held, delayed or not answered yet.
    func drop() {
        closeClient()
        if !isGateClosed && awaited.isEmpty { closeBroker() }
    }

    /// Closes both sides; held requests are lost.
    func end(_ reason: String) {
        held?.end(reason)
        gate = .open
        closeClient()
        closeBroker(reason)
    }

    // MARK: Sides

    /// What the client sent behind a gate, and what it had not received yet, is lost.
    private func closeClient() {
        client = nil
        fromClient.removeAll()
        toClient.removeAll()
    }

    private func closeBroker(_ reason: String = "the broker has closed the connection") {
        broker = nil
        toBroker.removeAll()
        underWay = []
        for hold in awaited.values { hold.end(reason) }
        awaited = [:]
        // A held request can no longer reach the broker on this connection.
        held?.end(reason)
        gate = .open
        fromClient.removeAll()
    }

    /// Returns false if this side is closed.
    private func read(from descriptor: Int32, into queue: inout ByteQueue) -> Bool {
        guard descriptor >= 0 else { return true }
        // The errno of the read; 0: bytes arrived.
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.readBytes) { buffer, count in
            var got = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            while got < 0 && errno == EINTR { got = recv(descriptor, buffer.baseAddress, buffer.count, 0) }
            count = max(0, got)
            failure = got == 0 ? ECONNRESET : got < 0 ? errno : 0
        }
        queue.append(bytes)
        return failure == 0 || failure == EAGAIN
    }

    /// Returns false if this side is closed. What the socket does not accept now stays queued.
    private func write(_ queue: inout ByteQueue, to descriptor: Int32) -> Bool {
        while descriptor >= 0 && !queue.isEmpty {
            let count = queue.withFront { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count < 0 && errno == EINTR { continue }
            // A connection that is not complete yet accepts nothing.
            if count < 0 { return errno == EAGAIN || errno == ENOTCONN }
            queue.removeFirst(count)
        }
        return true
    }
}
