// Metrics of a process under measurement.

import HTTPClient
import HTTPTestKit
public import KafkaTestKit
import Platform

/// The admin server of a process that was started with `--admin.listen 127.0.0.1:0` and `--log.format text`.
public struct AdminReading: Sendable {
    private let address: String

    public init(_ process: ChildProcess) async throws {
        let words = "admin server listens"
        try await process.waitUntilPrinted(words)
        var found: Substring?
        try await waitUntil("the address after \"\(words)\"") {
            let line = process.standardOutput.split(separator: "\n").first { $0.contains(words) }
            found = line?.split(separator: "address=").dropFirst().first?.prefix { !" \n".contains($0) }
            return found?.contains(":") == true
        }
        address = String(found ?? "")
    }

    public func isReady() async throws -> Bool { try await answer("/readyz").status == 200 }

    /// The sum of all series of a metric.
    public func sum(_ metric: String) async throws -> Double {
        let text = String(decoding: try await answer("/metrics").body, as: UTF8.self)
        let values = text.split(separator: "\n").filter { $0.hasPrefix("\(metric){") || $0.hasPrefix("\(metric) ") }
        guard !values.isEmpty else { throw IngestTestFault("\(address) has no metric \(metric)") }
        return values.reduce(0) { $0 + ($1.split(separator: " ").last.flatMap { Double($0) } ?? .nan) }
    }

    private func answer(_ path: String) async throws -> HTTPClient.Response {
        let url = "http://\(address)\(path)"
        return try await blocking {
            let client = try HTTPClient()
            defer { client.close() }
            return try client.answer(to: HTTPClient.Request("GET", url))
        }
    }
}
