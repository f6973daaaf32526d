import Foundation
import HTTP
import KafkaTestKit
import Platform
import Testing

@Suite struct `A compressed answer` {
    private func headers(_ fields: KeyValuePairs<String, String>) -> HTTPHeaders {
        var headers = HTTPHeaders()
        for (name, value) in fields { headers.add(name, value) }
        return headers
    }

    private static let text = Array(repeating: #"{"churn":0.046667,"day":"2026-11-01"}"#, count: 500).joined(
        separator: ",")

    @Test func `has the content that it would have without compression`() async throws {
        let response = HTTPResponse.json(200, Array(Self.text.utf8)).compressed(
            for: headers(["Accept-Encoding": "gzip"]))
        #expect(response.headers["Content-Encoding"] == "gzip" && response.body.count < Self.text.utf8.count / 10)
        let scratch = try ScratchDirectory("gzip")
        defer { withExtendedLifetime(scratch) {} }
        let path = "\(scratch.path)/answer.gz"
        try Data(response.body).write(to: URL(fileURLWithPath: path))
        let unpacked = try await run("/bin/gzip", ["-dc", path])
        #expect(unpacked.code == 0 && unpacked.standardOutput == Self.text)
    }

    @Test(arguments: [
        ("gzip", true), ("br, GZIP ;q=0.5", true), ("*", true), ("deflate, *;q=0.1", true), ("gzip;q=0", false),
        ("*;q=0", false), ("gzip; q = 0.00, *", false), ("identity", false), ("", false), ("xgzip", false),
        ("gzip;q=0.001", true),
    ])
    func `is for clients that accept it`(_ accepted: String, _ isCompressed: Bool) {
        let response = HTTPResponse.json(200, Array(Self.text.utf8)).compressed(
            for: headers(["Accept-Encoding": accepted]))
        #expect((response.headers["Content-Encoding"] != nil) == isCompressed)
    }

    @Test func `is not made of a small body, of one with a tag, or without a wish`() {
        let wish = headers(["Accept-Encoding": "gzip"])
        let small = HTTPResponse.json(200, Array(Self.text.utf8.prefix(1023)))
        #expect(small.compressed(for: wish) == small)
        var tagged = HTTPResponse.json(200, Array(Self.text.utf8))
        tagged.headers.add("ETag", "\"1\"")
        #expect(tagged.compressed(for: wish) == tagged)
        let large = HTTPResponse.json(200, Array(Self.text.utf8))
        #expect(large.compressed(for: HTTPHeaders()) == large)
        // Bytes without any pattern do not become smaller.
        var state: UInt64 = 1
        let noise = HTTPResponse.json(
            200,
            (0..<5000).map { _ in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(state >> 56)
            })
        #expect(noise.compressed(for: wish) == noise)
    }
}
