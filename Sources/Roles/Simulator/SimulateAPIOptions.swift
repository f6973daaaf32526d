// The options of `perennial simulate --api`.

import CommandLine
import Platform
import Settings

struct SimulateAPIOptions: Sendable {
    /// nil: the simulator serves no API.
    var address: ListenAddress?
    var sandbox: ListenAddress?
    var authority: String?
    var key: String?
    var settings: String?
    /// Per thousand requests.
    var troubles = 0
    var hold: Duration = .seconds(60)
    var rate: Int?
    var journal: String?
    /// nil: the API is served until a signal arrives.
    var duration: Duration?

    private var given: [String] = []

    static let options = [
        CommandOption(
            "api", value: "ADDRESS",
            effect: "Serves the App Store Server API's endpoints for consumption at this address, such as 127.0.0.1:0."),
        CommandOption(
            "api-sandbox", value: "ADDRESS",
            effect: "Serves sandbox at this address, and then only production at --api."),
        CommandOption(
            "api-ca", value: "FILE",
            effect: "Serves it over TLS, and writes the authority of its certificate, for apple.ca."),
        CommandOption("api-key", value: "FILE", effect: "Writes the key that tokens are signed with, for apple.key."),
        CommandOption(
            "api-settings", value: "FILE",
            effect: "Writes the settings `apple.*` for it, as soon as it listens. They are printed as well."),
        CommandOption(
            "api-faults", value: "PERCENT",
            effect:
                "Share of requests that get 429, 500, 503, no answer or a cut connection, some of them after they were "
                + "accepted (0)."),
        CommandOption(
            "api-hold", value: "DURATION", effect: "How long a request without an answer stays open (60s)."),
        CommandOption(
            "api-rate", value: "N", effect: "Requests per second for each app; more get 429 (no limit)."),
        CommandOption("api-journal", value: "FILE", effect: "Writes a line for each request before it is answered."),
        CommandOption(
            "api-for", value: "DURATION", effect: "How long to serve after the last post (until SIGTERM or SIGINT)."),
    ]

    init() {}

    init(_ invocation: Invocation, _ reader: inout OptionReader) {
        reader.address("api") { address = $0 }
        reader.address("api-sandbox") { sandbox = $0 }
        authority = invocation.option("api-ca")
        key = invocation.option("api-key")
        settings = invocation.option("api-settings")
        reader.percent("api-faults") { troubles = $0 }
        reader.duration("api-hold") { hold = .milliseconds($0) }
        if invocation.has("api-rate") { reader.whole("api-rate", 1...Self.maxRate) { rate = $0 } }
        journal = invocation.option("api-journal")
        reader.duration("api-for") { duration = .milliseconds($0) }
        given = Self.options.map(\.name).filter { $0 != "api" && invocation.has($0) }
    }

    private static let maxRate = 1_000_000

    var contradictions: [String] {
        guard address == nil, let first = given.first else { return [] }
        return ["--\(first) needs --api: give --api as well"]
    }
}
