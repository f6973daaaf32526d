// What an attacker sends, at a rate that two cores can send and be sent.

internal import CLoad
internal import Platform

/// Requests of raw bytes over plain connections to loopback.
public struct Flood: Sendable {
    /// Stands in a request where its number is written, so that no two of them are the same.
    public static let number = PERENNIAL_FLOOD_NUMBER

    /// Addresses of this machine that connections come from, in turn.
    public var sources: [String]
    public var port: UInt16
    /// With their heads; in turn. An empty one is a connection that says nothing.
    public var requests: Bodies
    /// Open at a time, at the most.
    public var connections: Int
    /// Whether a connection is used again after an answer.
    public var keepsConnections = false
    /// Requests begun a second, as far as a connection is free.
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

    /// Blocks until its time is over; what has no answer by then is cut off.
    public func run() throws -> FloodOutcome {
        // Beside what the process has open anyway.
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
        guard code == 0 else { throw IngestTestFault("the flood on port \(port) could not begin") }
        return FloodOutcome(outcome)
    }
}

private func withCStrings<Result>(
    _ texts: [String], _ body: (UnsafeBufferPointer<UnsafePointer<CChar>?>) -> Result
) -> Result {
    // All in one buffer, each with its end: nothing else has to be freed.
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

/// How a flood ended.
public struct FloodOutcome: Sendable, CustomStringConvertible {
    /// Requests that were begun.
    public let sent: Int
    /// Answers by status, those that came.
    public let statuses: [Int: Int]
    /// Connections that the server closed without an answer.
    public let closed: Int
    /// Connections open at a time, those among them that waited to be accepted.
    public let mostOpen: Int
    /// Not begun at their time: every connection was in use.
    public let heldBack: Int
    public let seconds: Double
    /// CPU time of the client: near `seconds` it was the narrow place, not the server.
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
