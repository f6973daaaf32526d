// What a server counts. The objects are made once; requests only add.

import Telemetry

struct ServerMetrics: Sendable {
    enum Cause: String, CaseIterable {
        /// Closed before there was a request line: garbage, a failed handshake, a target larger than the buffer, or a client
        /// that thought better of it. The library closes these without telling which, some with an answer of its own.
        case unreadable
        /// The head breaks the standard, or could be read in two ways.
        case malformed
        case headTooLarge = "head_too_large"
        case bodyTooLarge = "body_too_large"
        /// Head or body was not complete, or the answer not taken, in time.
        case timedOut = "timed_out"
        case overloaded
        /// Bodies take as much memory as they may together.
        case buffersFull = "buffers_full"
        /// Closed when it was accepted: the address may not connect, or has too many connections already.
        case notAdmitted = "not_admitted"
        /// The handler dropped its responder, or gave an answer that HTTP cannot carry: a defect of ours.
        case unanswered
        /// Still held when the deadline of the stop passed, or complete only then.
        case stopped
    }

    private let classes: [Counter]
    private let refused: [Cause: Counter]
    let connections: Gauge
    let inFlight: Gauge

    init(_ registry: Metrics, server: String) {
        classes = (1...5).map { digit in
            registry.counter(
                "perennial_http_requests_total", help: "Requests answered, by class of status.",
                labels: ["server": server, "code": "\(digit)xx"])
        }
        refused = Dictionary(
            uniqueKeysWithValues: Cause.allCases.map { cause in
                let counter = registry.counter(
                    "perennial_http_refused_total", help: "Requests the server itself refused or cut, by cause.",
                    labels: ["server": server, "cause": cause.rawValue])
                return (cause, counter)
            })
        connections = registry.gauge(
            "perennial_http_connections", help: "Connections open now.", labels: ["server": server])
        inFlight = registry.gauge(
            "perennial_http_requests_in_flight", help: "Requests a handler has not answered yet.",
            labels: ["server": server])
    }

    func count(status: Int) { classes[min(max(status / 100, 1), 5) - 1].add() }
    func count(_ cause: Cause) { refused[cause]?.add() }
}
