// An attacker's requests, at a rate that two cores can send and receive.

internal import CLoad
internal import Platform

/// Raw requests over plaintext connections to loopback.
public struct Flood: Sendable {
    /// A placeholder in a request for its number, so that all requests differ.
    public static let number = PERENNIAL_FLOOD_NUMBER

    /// Addresses of this machine that connections come from, in turn.
    public var sources: [String]
    public var port: UInt16
    /// Requests with their heads, sent in turn. An empty request opens a connection and sends nothing.
    public var requests: Bodies
    /// The maximum number of open connections.
    public var connections: Int
    /// Whether a connection is reused after an answer.
    public var keepsConnections = false
    /// Requests started per second, as far as a connection is free.
    public var rate: Double
    public var seconds: Double

    public init(
        from sources: [String], port: UInt16, requests: Bodies, connections: Int, rate: Double, seconds: Double
    ) {
        self.sources = sources
        self.port = port
        self.requests = requests
        self.connections = connections
        self.rate = rate
        self.seconds = seconds
    }

    /// Blocks until the time is over; requests without an answer are then cut off.
    public func run() throws -> FloodOutcome {
        // In addition to the files that the process has open anyway.
        let descriptors = connections + 256
        guard DescriptorLimit.raise(to: descriptors) >= descriptors else {
            throw IngestTestFault("\(connections) connections need \(descriptors) open files (ulimit -Hn)")
        }
        var outcome = perennial_flood_outcome()
        let code = requests.bytes.withUnsafeBufferPointer { bytes in
            requests.offsets.withUnsafeBufferPointer { offsets in
                withCStrings(sources) { sources in
                    var flood = perennial_flood()
                    flood.sources = sources.baseAddress
                    flood.source_count = Int32(sources.count)
                    flood.port = port
                    (flood.bytes, flood.offsets, flood.request_count) = (
                        bytes.baseAddress, offsets.baseAddress, requests.count
                    )
                    (flood.connections, flood.keeps) = (Int32(connections), keepsConnections)
                    (flood.rate, flood.seconds) = (rate, seconds)
                    return perennial_flood_run(&flood, &outcome)
                }
            }
        }
        guard code == 0 else { throw IngestTestFault("the flood on port \(port) could not be started") }
        return FloodOutcome(outcome)
    }
}

private func withCStrings<Result>(
    _ texts: [String], _ body: (UnsafeBufferPointer<UnsafePointer<CChar>?>) -> Result
) -> Result {
    // All texts are in one buffer, so that only the buffer has to be freed.
    var bytes: [CChar] = []
    var starts: [Int] = []
    for text in texts {
        starts.append(bytes.count)
        bytes += text.utf8CString
    }
    return bytes.withUnsafeBufferPointer { buffer in
        starts.map { buffer.baseAddress?.advanced(by: $0) }.withUnsafeBufferPointer(body)
    }
}

/// The result of a flood.
public struct FloodOutcome: Sendable, CustomStringConvertible {
    /// Requests that were started.
    public let sent: Int
    /// Number of answers by status.
    public let statuses: [Int: Int]
    /// Connections that the server closed without an answer.
    public let closed: Int
    /// The maximum number of open connections, including those that waited to be accepted.
    public let mostOpen: Int
    /// Requests that were not started in time, because every connection was in use.
    public let heldBack: Int
    public let seconds: Double
    /// CPU time of the client. If it is near `seconds`, the client was the bottleneck and not the server.
    public let clientSeconds: Double

    init(_ outcome: perennial_flood_outcome) {
        statuses = answersByStatus(of: outcome.statuses)
        (sent, closed) = (Int(outcome.sent), Int(outcome.closed))
        (mostOpen, heldBack) = (Int(outcome.most_open), Int(outcome.held_back))
        (seconds, clientSeconds) = (outcome.seconds, outcome.client_cpu_seconds)
    }

    public var answered: Int { statuses.values.reduce(0, +) }
    public func answered(_ status: Int) -> Int { statuses[status, default: 0] }

    public var description: String {
        let answers = statuses.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }
        return (answers + (closed > 0 ? ["\(closed) × closed"] : [])).joined(separator: ", ")
    }
}
