// State that the thread of a client shares with its users, and the loop of that thread.

internal import CCurl
internal import Platform
import Synchronization

final class ClientCore: Sendable {
    /// Orders from users for the thread.
    private struct Inbox {
        var waiting: [Order] = []
        var cancelled: Set<HTTPClient.Ticket> = []
        var lastNumber: UInt64 = 0
        var isClosing = false
        /// nil: the handle is freed, and nobody may wake it.
        var multi: MultiHandle?

        /// The next orders of the queue, and all cancelled ones wherever they stand. None if the client is closing.
        mutating func takeWaiting(_ count: Int) -> [Order] {
            guard !isClosing else { return [] }
            var taken = Array(waiting.prefix(count))
            waiting.removeFirst(taken.count)
            guard !cancelled.isEmpty else { return taken }
            taken += waiting.filter { cancelled.contains($0.ticket) }
            waiting.removeAll { cancelled.contains($0.ticket) }
            return taken
        }

        func wake() {
            if let multi { curl_multi_wakeup(multi.pointer) }
        }
    }

    struct Order: Sendable {
        let ticket: HTTPClient.Ticket
        let request: HTTPClient.Request
        let completion: HTTPClient.Completion
    }

    /// Unchecked: used on the client's thread. Only `curl_multi_wakeup` may be called from other threads, as its manual
    /// says, and that happens under the lock that guards the end of the handle.
    struct MultiHandle: @unchecked Sendable { let pointer: UnsafeMutableRawPointer }

    let configuration: HTTPClient.Configuration
    let ended = Latch()
    private let inbox: Mutex<Inbox>

    /// The library is initialised once per process. It is never cleaned up: another client may be using it.
    private static let beginning = perennial_curl_begin()

    init(_ configuration: HTTPClient.Configuration) throws(HTTPClientFault) {
        self.configuration = configuration
        guard Self.beginning == CURLE_OK, let multi = curl_multi_init() else {
            throw HTTPClientFault(.failed, "libcurl did not start")
        }
        let connections = configuration.maxInFlight
        _ = perennial_curl_multi_set_number(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections)
        // By default the library keeps four connections for each request in flight.
        _ = perennial_curl_multi_set_number(multi, CURLMOPT_MAXCONNECTS, connections)
        inbox = Mutex(Inbox(multi: MultiHandle(pointer: multi)))
    }

    // MARK: On the threads of users

    func add(_ request: HTTPClient.Request, _ completion: @escaping HTTPClient.Completion) -> HTTPClient.Ticket {
        let limit = configuration.maxWaiting + configuration.maxInFlight
        let (ticket, refusal) = inbox.withLock { inbox -> (HTTPClient.Ticket, HTTPClientFault?) in
            inbox.lastNumber += 1
            let ticket = HTTPClient.Ticket(number: inbox.lastNumber)
            if inbox.isClosing { return (ticket, .closed) }
            if inbox.waiting.count >= limit {
                return (ticket, HTTPClientFault(.overloaded, "\(inbox.waiting.count) requests are waiting already"))
            }
            inbox.waiting.append(Order(ticket: ticket, request: request, completion: completion))
            inbox.wake()
            return (ticket, nil)
        }
        if let refusal { completion(.failure(refusal)) }
        return ticket
    }

    func cancel(_ ticket: HTTPClient.Ticket) {
        inbox.withLock { inbox in
            guard !inbox.isClosing else { return }
            inbox.cancelled.insert(ticket)
            inbox.wake()
        }
    }

    func beginClose() {
        inbox.withLock { inbox in
            inbox.isClosing = true
            inbox.wake()
        }
    }

    /// Frees the library's handle. All transfers have been removed from it.
    func release() {
        let multi = inbox.withLock { inbox in
            defer { inbox.multi = nil }
            inbox.isClosing = true
            return inbox.multi
        }
        if let multi { curl_multi_cleanup(multi.pointer) }
        ended.open()
    }

    // MARK: On the thread of the client

    func run() {
        guard let multi = inbox.withLock({ $0.multi }) else { return }
        var transfers: [UnsafeMutableRawPointer: Transfer] = [:]
        var nextWatch = ContinuousClock.now
        while takeOrders(multi, &transfers) {
            var running: Int32 = 0
            curl_multi_perform(multi.pointer, &running)
            wakeWaiting(multi, transfers)
            finishEnded(multi, &transfers)
            if ContinuousClock.now >= nextWatch {
                nextWatch = .now + .seconds(1)
                endOverdue(multi, &transfers)
            }
            guard !hasRoomForWaiting(transfers.count) else { continue }
            // The library's own timers shorten the wait, and users end it with a wake-up. One second is only a safety
            // net.
            curl_multi_poll(multi.pointer, nil, 0, 1000, nil)
        }
        let left = inbox.withLock { inbox in
            defer { inbox.waiting = [] }
            return inbox.waiting
        }
        for (easy, transfer) in transfers {
            curl_multi_remove_handle(multi.pointer, easy)
            transfer.end(.failure(.closed))
        }
        for order in left { order.completion(.failure(.closed)) }
        release()
    }

    private func hasRoomForWaiting(_ inFlight: Int) -> Bool {
        inFlight < configuration.maxInFlight && inbox.withLock { !$0.waiting.isEmpty }
    }

    /// false: the client is closing.
    private func takeOrders(_ multi: MultiHandle, _ transfers: inout [UnsafeMutableRawPointer: Transfer]) -> Bool {
        let room = configuration.maxInFlight - transfers.count
        let (orders, cancelled, isClosing) = inbox.withLock { inbox in
            defer { inbox.cancelled = [] }
            return (inbox.takeWaiting(room), inbox.cancelled, inbox.isClosing)
        }
        if isClosing { return false }
        if !cancelled.isEmpty {
            for (easy, transfer) in transfers where cancelled.contains(transfer.order.ticket) {
                curl_multi_remove_handle(multi.pointer, easy)
                transfers[easy] = nil
                transfer.end(.failure(.cancelled))
            }
        }
        for order in orders {
            // Cancelled while it was waiting: it is not sent at all.
            if cancelled.contains(order.ticket) {
                order.completion(.failure(.cancelled))
            } else {
                start(order, multi, &transfers)
            }
        }
        return true
    }

    private func start(
        _ order: Order, _ multi: MultiHandle, _ transfers: inout [UnsafeMutableRawPointer: Transfer]
    ) {
        let transfer: Transfer
        do throws(HTTPClientFault) {
            transfer = try Transfer(order, configuration)
        } catch {
            order.completion(.failure(error))
            return
        }
        let code = curl_multi_add_handle(multi.pointer, transfer.easy)
        guard code == CURLM_OK else {
            transfer.end(.failure(HTTPClientFault(.failed, String(cString: curl_multi_strerror(code)))))
            return
        }
        transfers[transfer.easy] = transfer
    }

    /// With CURLOPT_PIPEWAIT a transfer waits until a new connection is there, in the hope to share it. If it cannot be
    /// shared, libcurl (8.14) does not tell those who wait before some transfer ends.
    private func wakeWaiting(_ multi: MultiHandle, _ transfers: [UnsafeMutableRawPointer: Transfer]) {
        for transfer in transfers.values where !transfer.hasWokenOthers {
            transfer.hasWokenOthers = true
            if transfers.count > 1 { perennial_curl_wake_waiting(multi.pointer) }
        }
    }

    /// A safety net below the library's own time limit: without it, a caller whose answer never comes would wait for
    /// ever.
    private func endOverdue(_ multi: MultiHandle, _ transfers: inout [UnsafeMutableRawPointer: Transfer]) {
        for (easy, transfer) in transfers where transfer.isOverdue {
            curl_multi_remove_handle(multi.pointer, easy)
            transfers[easy] = nil
            transfer.end(.failure(HTTPClientFault(.timedOut, "the request did not end within the time limit")))
        }
    }

    private func finishEnded(_ multi: MultiHandle, _ transfers: inout [UnsafeMutableRawPointer: Transfer]) {
        var code = CURLE_OK
        while let easy = perennial_curl_next_ended(multi.pointer, &code) {
            curl_multi_remove_handle(multi.pointer, easy)
            transfers.removeValue(forKey: easy)?.end(code)
        }
    }
}

extension HTTPClientFault {
    fileprivate static let closed = HTTPClientFault(.cancelled, "the client is closed")
    fileprivate static let cancelled = HTTPClientFault(.cancelled, "the request was cancelled")
}
