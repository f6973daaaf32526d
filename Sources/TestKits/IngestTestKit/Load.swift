// Posts for an HTTP server, many at a time, from one thread.

internal import CLoad
internal import Platform

/// What is posted, over which connections, and for how long.
public struct Load: Sendable {
    public enum Connections: Sendable {
        case kept
        /// A connection and a full handshake for every request.
        case new
        /// Like `new`, but resumes an earlier TLS session if the server allows it.
        case resumed
    }

    public enum Extent: Sendable {
        case requests(Int)
        case seconds(Double)
    }

    public var url: String
    /// nil: the method is POST.
    public var method: String?
    /// An additional header line.
    public var header: String?
    /// The address of this machine that connections come from; nil: the system chooses.
    public var source: String?
    /// A PEM file with the root of the server's certificate; nil: the load is sent without TLS.
    public var authorityFile: String?
    public var bodies: Bodies
    public var extent: Extent
    public var connections: Connections = .kept
    public var connectionCount = 64
    /// Makes every connection before the first request and before the clock starts: handshakes are expensive and are
    /// not measured.
    public var connectsFirst = false
    /// Requests started per second, whether or not the server keeps up; nil: each connection sends again after its
    /// answer.
    public var rate: Double?
    /// The index of the first body.
    public var firstBody = 0
    /// The timeout of one request. Apple does not publish its own; a later answer would be useless.
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
        guard code == 0 else { throw IngestTestFault("the load on \(url) could not be started") }
        return LoadOutcome(outcome)
    }

    /// All settings that need no pointer.
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

/// Bodies of requests, consecutive in memory.
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

/// The result of a load.
public struct LoadOutcome: Sendable, CustomStringConvertible {
    /// Number of answers by status.
    public let statuses: [Int: Int]
    /// Connections that the server did not accept.
    public let refused: Int
    public let timedOut: Int
    /// Requests that ended without an answer in another way, and the reason of the last one.
    public let broken: Int
    public let lastError: String
    /// Requests that were not started in time, because every connection waited for an answer.
    public let heldBack: Int
    public let seconds: Double
    /// CPU time of the client. If it is near `seconds`, the client was the bottleneck and not the server.
    public let clientSeconds: Double
    /// Milliseconds from the start of a request to its answer.
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
    /// All requests that ended, with or without an answer.
    public var sent: Int { answered + refused + timedOut + broken }
    public func answered(_ status: Int) -> Int { statuses[status, default: 0] }
    /// Every request was answered with 200.
    public var isAllAccepted: Bool { answered == answered(200) && refused + timedOut + broken + heldBack == 0 }

    public var description: String {
        var parts = statuses.sorted { $0.key < $1.key }.map { "\($0.value) answers \($0.key)" }
        let others = [(refused, "refused"), (timedOut, "timed out"), (broken, "broken"), (heldBack, "held back")]
        parts += others.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        if !lastError.isEmpty { parts.append("last error: \(lastError)") }
        return parts.joined(separator: ", ")
    }
}

/// - Parameter statuses: a C array, which Swift imports as a tuple.
func answersByStatus<Statuses>(of statuses: Statuses) -> [Int: Int] {
    withUnsafeBytes(of: statuses) { bytes in
        let counts = bytes.bindMemory(to: Int64.self)
        return Dictionary(uniqueKeysWithValues: counts.indices.filter { counts[$0] > 0 }.map { ($0, Int(counts[$0])) })
    }
}

/// What went wrong around a measurement, in words.
public struct IngestTestFault: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
