// The simulated App Store as a program beside the one under test, and the files that it leaves for the judge.

import Crypto
import Foundation
import KafkaTestKit
import Platform
import Testing

/// The files of one simulation. The same options give the same payloads again.
struct MakeBelieveStore: Sendable {
    /// One post that has its final answer, as the sender recorded it.
    struct Answered: Sendable {
        let uuid: String
        let sha256: String
        let status: Int?
        let expected: String
        let verdict: String
    }

    let scratch: ScratchDirectory
    let telling: [String]
    /// The path of another build than the one beside the tests.
    let program: String?

    var root: String { "\(scratch.path)/root.pem" }
    var apps: String { "\(scratch.path)/apps.json" }
    private var truthFile: String { "\(scratch.path)/truth.jsonl" }
    private var payloads: String { "\(scratch.path)/payloads" }
    private var acknowledged: String { "\(scratch.path)/acknowledged.jsonl" }

    /// - Parameters:
    ///   - telling: options of `perennial simulate` that decide what is simulated.
    ///   - keepsPayloads: whether every payload is written to a file; otherwise only the truth is.
    static func open(
        telling: [String], keepsPayloads: Bool = true, program: String? = nil
    ) async throws -> MakeBelieveStore {
        let store = MakeBelieveStore(scratch: try ScratchDirectory("store"), telling: telling, program: program)
        let told = try await run(
            program ?? productPath("perennial"),
            ["simulate", "--root", store.root, "--apps", store.apps]
                + (keepsPayloads ? ["--out", store.payloads] : ["--truth", store.truthFile]) + telling,
            environment: .only([:]), workingDirectory: "/", timeout: .seconds(300))
        try #require(told.code == 0, "\(told.words)")
        return store
    }

    /// What really happened, one line each.
    func truth() throws -> [[UInt8]] {
        try Data(contentsOf: URL(fileURLWithPath: truthFile)).split(separator: UInt8(ascii: "\n")).map { [UInt8]($0) }
    }

    /// The settings with which ingest trusts this store.
    var ingestSettings: [String] { ["--apps", apps, "--verify.roots", root] }

    /// Posts everything; the process ends when every post has its final answer.
    func post(to port: UInt16, rate: Int? = nil, connections: Int = 8) throws -> ChildProcess {
        try ChildProcess(
            program ?? productPath("perennial"),
            ["simulate", "--url", "http://127.0.0.1:\(port)/notifications", "--acknowledged", acknowledged]
                // An hour of Apple's is a quarter of a second here: a post that found ingest dead is retried while the test runs,
                // the last time after 39 s.
                + ["--connections", "\(connections)", "--retry-scale", "14400"]
                + (rate.map { ["--rate", "\($0)"] } ?? []) + telling,
            environment: .only([:]), workingDirectory: "/")
    }

    /// Wraps a signed payload as Apple does.
    static func body(_ payload: [UInt8]) -> [UInt8] {
        Array(#"{"signedPayload":""#.utf8) + payload + Array(#""}"#.utf8)
    }

    /// Posts one body, and returns the status of the answer.
    func post(body: [UInt8], to port: UInt16) async throws -> Int? {
        let file = try scratch.write(String(decoding: body, as: UTF8.self), to: "body")
        let posted = try await run(
            "curl",
            ["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--data-binary", "@\(file)"]
                + ["--header", "Content-Type: application/json", "http://127.0.0.1:\(port)/notifications"])
        return Int(posted.standardOutput)
    }

    func payloadCount() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: payloads).count { $0.hasSuffix(".jws") }
    }

    /// Posts that have their final answer by now.
    func answerCount() -> Int {
        FileManager.default.contents(atPath: acknowledged)?.count { $0 == UInt8(ascii: "\n") } ?? 0
    }

    func answers() throws -> [Answered] {
        try String(contentsOfFile: acknowledged, encoding: .utf8).split(separator: "\n").map { line in
            let json = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            return Answered(
                uuid: try #require(json["notificationUUID"] as? String),
                sha256: try #require(json["sha256"] as? String),
                status: json["status"] as? Int, expected: try #require(json["expected"] as? String),
                verdict: try #require(json["verdict"] as? String))
        }
    }

    /// Every payload as written to files, by the hexadecimal SHA-256 of its bytes.
    func payloadsByHash() throws -> [String: [UInt8]] {
        var payloads: [String: [UInt8]] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: self.payloads) where name.hasSuffix(".jws") {
            let bytes = try payload(name)
            payloads[hexadecimal(SHA256.digest(bytes.span))] = bytes
        }
        return payloads
    }

    func payload(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(payloads)/\(name)")))
    }
}
