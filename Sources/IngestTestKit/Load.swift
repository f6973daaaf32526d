// Posts for an HTTP server, many at a time, from one thread.

internal import CLoad
internal import Platform

/// What is posted, over which connections, and how long.
public struct Load: Sendable {
    public enum Connections: Sendable {
        case kept
        /// A connection and a full handshake for every request.
        case new
        /// As `new`, with the TLS session of an earlier one where the server lets it.
        case resumed
    }

    public enum Extent: Sendable {
        case requests(Int)
        case seconds(Double)
    }

    public var url: String
    /// nil: POST.
    public var method: String?
    /// A line besides those that every request has.
    public var header: String?
    /// The address of this machine that connections come from; nil: the system's choice.
    public var source: String?
    /// PEM file that the server's certificate leads to; nil: plaintext.
    public var authorityFile: String?
    public var bodies: Bodies
    public var extent: Extent
    public var connections: Connections = .kept
    public var connectionCount = 64
    /// Every connection is made before the first request and the clock: handshakes are dear, and no part of what is asked.
    public var connectsFirst = false
    /// Requests started a second whether or not the server keeps up; nil: each connection sends when it has its answer.
    public var rate: Double?
    /// Of the bodies, where to begin.
    public var firstBody = 0
    /// For one request. Apple does not tell its own; the answer to be had after this would be of no use to anybody.
    public var timeout: Duration = .seconds(30)

    public init(_ url: String, authorityFile: String?, bodies: Bodies, _ extent: Extent) {
        self.url = url
        self.authorityFile = authorityFile
        self.bodies = bodies
        self.extent = extent
    }

    /// Blocks until the last request has ended.
    public func run() throws -> LoadOutcome {
        var outcome = perennial_load_outcome()
        let code = url.withCString { url in
            bodies.bytes.withUnsafeBufferPointer { bytes in
                bodies.offsets.withUnsafeBufferPointer { offsets in
                    withOptionalCString(authorityFile) { authority in
                        withOptionalCString(method) { method in
                            withOptionalCString(header) { header in
                                withOptionalCString(source) { source in
                                    var load = settings
                                    (load.url, load.method, load.header, load.authority) = (
                                        url, method, header, authority
                                    )
                                    load.source = source
                                    (load.bytes, load.offsets) = (bytes.baseAddress, offsets.baseAddress)
                                    return perennial_load_run(&load, &outcome)
                                }
                            }
                        }
                    }
                }
            }
        }
        guard code == 0 else { throw IngestTestFault("the load on \(url) could not begin") }
        return LoadOutcome(outcome)
    }

    /// All that needs no pointer.
    private var settings: perennial_load {
        var load = perennial_load()
        (load.body_count, load.first_body) = (bodies.count, firstBody)
        load.connections = Int32(connectionCount)
        load.connects_first = connectsFirst
        load.use =
            switch connections {
            case .kept: PERENNIAL_LOAD_KEPT
            case .new: PERENNIAL_LOAD_NEW
            case .resumed: PERENNIAL_LOAD_RESUMED
            }
        switch extent {
        case .requests(let count): load.requests = Int64(count)
        case .seconds(let seconds): load.seconds = seconds
        }
        load.rate = rate ?? 0
        load.timeout_ms = Int(timeout.fractionalSeconds * 1000)
        return load
    }
}

private func withOptionalCString<Result>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
    if let text { text.withCString { body($0) } } else { body(nil) }
}

/// Bodies of requests, one after the other in memory.
public struct Bodies: Sendable {
    private(set) var bytes: [UInt8] = []
    private(set) var offsets: [Int] = [0]

    public init() {}

    public var count: Int { offsets.count - 1 }
    public var averageBytes: Int { count == 0 ? 0 : bytes.count / count }

    public mutating func append(_ body: [UInt8]) {
        bytes += body
        offsets.append(bytes.count)
    }

    public subscript(_ index: Int) -> [UInt8] { Array(bytes[offsets[index]..<offsets[index + 1]]) }
}

/// How a load ended.
public struct LoadOutcome: Sendable, CustomStringConvertible {
    /// Answers by status, those that came.
    public let statuses: [Int: Int]
    /// Connections that the server did not take.
    public let refused: Int
    public let timedOut: Int
    /// Ended without an answer in another way, and how the last one did.
    public let broken: Int
    public let lastError: String
    /// Not started at their time: every connection was waiting for an answer.
    public let heldBack: Int
    public let seconds: Double
    /// CPU time of the client: near `seconds` it was the narrow place, not the server.
    public let clientSeconds: Double
    /// Milliseconds from a request's start to its answer.
    public let latency: (p50: Double, p99: Double, max: Double)

    init(_ outcome: perennial_load_outcome) {
        statuses = answersByStatus(of: outcome.statuses)
        (refused, timedOut) = (Int(outcome.refused), Int(outcome.timed_out))
        (broken, heldBack) = (Int(outcome.broken), Int(outcome.held_back))
        lastError = withUnsafeBytes(of: outcome.last_error) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        (seconds, clientSeconds) = (outcome.seconds, outcome.client_cpu_seconds)
        latency = (outcome.p50_ms, outcome.p99_ms, outcome.max_ms)
    }

    public var answered: Int { statuses.values.reduce(0, +) }
    /// With an answer or without.
    public var sent: Int { answered + refused + timedOut + broken }
    public func answered(_ status: Int) -> Int { statuses[status, default: 0] }
    /// Every request was answered with 200.
    public var isAllAccepted: Bool { answered == answered(200) && refused + timedOut + broken + heldBack == 0 }

    public var description: String {
        var parts = statuses.sorted { $0.key < $1.key }.map { "\($0.value) answers \($0.key)" }
        let others = [(refused, "refused"), (timedOut, "timed out"), (broken, "broken"), (heldBack, "held back")]
        parts += others.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        if !lastError.isEmpty { parts.append("the last with: \(lastError)") }
        return parts.joined(separator: ", ")
    }
}

/// - Parameter statuses: an array of C, which Swift has as a tuple.
func answersByStatus<Statuses>(of statuses: Statuses) -> [Int: Int] {
    withUnsafeBytes(of: statuses) { bytes in
        let counts = bytes.bindMemory(to: Int64.self)
        return Dictionary(uniqueKeysWithValues: counts.indices.filter { counts[$0] > 0 }.map { ($0, Int(counts[$0])) })
    }
}

/// What went wrong around a measurement, in words for a person.
public struct IngestTestFault: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
