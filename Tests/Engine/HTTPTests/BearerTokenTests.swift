import HTTP
import Testing

@Suite struct `A bearer token` {
    @Test(
        arguments: [
            ("Bearer secret", true), ("bearer  secret ", true), ("BEARER secret", true), ("Bearer Secret", false),
            ("Bearer secre", false), ("Bearer secrets", false), ("secret", false), ("Basic secret", false),
            ("Bearer", false), ("Bearer ", false), ("Bearer \t ", false), ("", false),
        ])
    func `is compared byte by byte`(_ value: String, _ fits: Bool) {
        var headers = HTTPHeaders()
        headers.add("Authorization", value)
        #expect(headers.bear(anyOf: ["secret"]) == fits)
    }

    @Test func `is given once`() {
        var headers = HTTPHeaders()
        #expect(!headers.bear(anyOf: ["secret"]))
        headers.add("Authorization", "Bearer secret")
        headers.add("authorization", "Bearer secret")
        #expect(!headers.bear(anyOf: ["secret"]))
    }
}
