// Metrics of a server. The objects are made once; requests only add to them.

import Telemetry

struct ServerMetrics: Sendable {
    enum Cause: String, CaseIterable {
        /// Closed before there was a request line: garbage, a failed handshake, a target larger than the buffer, or a
        /// client that gave up. The library does not say which, and answers some of these by itself.
        case unreadable
        /// The head violates the standard or is ambiguous.
        case malformed
        case headTooLarge = "head_too_large"
        case bodyTooLarge = "body_too_large"
        /// Head or body did not arrive completely in time, or the client did not read the answer in time.
        case timedOut = "timed_out"
        case overloaded
        /// The bodies together have reached their memory limit.
        case buffersFull = "buffers_full"
        /// Closed when it was accepted: the address may not connect, or has too many open connections.
        case notAdmitted = "not_admitted"
        /// The handler dropped its responder, or gave an answer that HTTP cannot carry: a defect of ours.
        case unanswered
        /// Not answered, or completed only, when the deadline of the stop had passed.
        case stopped
    }

    private let classes: [Counter]
    private let refused: [Cause: Counter]
    let connections: Gauge
    let inFlight: Gauge

    init(_ registry: Metrics, server: String) {
        classes = (1...5).map { digit in
            registry.counter(
                "perennial_http_requests_total", help: "Requests answered, by class of HTTP status.",
                labels: ["server": server, "code": "\(digit)xx"])
        }
        refused = Dictionary(
            uniqueKeysWithValues: Cause.allCases.map { cause in
                let counter = registry.counter(
                    "perennial_http_refused_total", help: "Requests the server itself refused or cut off, by cause.",
                    labels: ["server": server, "cause": cause.rawValue])
                return (cause, counter)
            })
        connections = registry.gauge(
            "perennial_http_connections", help: "Open connections.", labels: ["server": server])
        inFlight = registry.gauge(
            "perennial_http_requests_in_flight", help: "Requests that the handler has not answered yet.",
            labels: ["server": server])
    }

    func count(status: Int) { classes[min(max(status / 100, 1), 5) - 1].add() }
    func count(_ cause: Cause) { refused[cause]?.add() }
}
