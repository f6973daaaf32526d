// The options of `perennial simulate`.

import CommandLine
import Platform
import Settings
import Simulation

struct SimulateOptions: Sendable {
    var seed: UInt64 = 1
    var subscribers = 100
    /// Per thousand subscribers.
    var sandboxPerMille = 0
    /// Milliseconds since 1970.
    var from: Int64 = 0
    var days = 400
    /// Instead of `days`.
    var hours: Int?
    /// How many milliseconds after now the stories of `--live` end; nil: `--live` is not set.
    var ahead: Int64?
    /// Per thousand subscribers: stories with a refund request.
    var refunds = 0
    /// In milliseconds; nil: the simulated Apple takes its usual time.
    var decidesWithin: Int64?

    var url: String?
    var authorities: String?
    var payloadFolder: String?
    var truth: String?
    var root: String?
    var apps: String?
    var acknowledged: String?
    var usage: String?
    var usageToken: String?
    var usageFile: String?
    var api = SimulateAPIOptions()

    /// nil: as fast as answers arrive.
    var speed: Double?
    var rate: Double?
    var connections = 32
    var retryScale = 3600.0

    /// Per thousand.
    var duplicates = 0
    var delays = 0
    var reorderings = 0
    var forgeries = 0

    static let hourMilliseconds: Int64 = 3_600_000
    static let dayMilliseconds: Int64 = 86_400_000
    /// A shorter time gives no story.
    private static let shortestDecision: Int64 = 60_000
    private static let aheadByDefault: Int64 = hourMilliseconds
    /// Ten years; Apple's own certificates are not valid longer.
    static let maxDays = 3650
    /// Each connection needs a socket on both sides.
    static let maxConnections = 1024

    var length: Int64 { hours.map { Int64($0) * Self.hourMilliseconds } ?? Int64(days) * Self.dayMilliseconds }
    var end: Int64 { from + length + (ahead ?? 0) }
    var isLive: Bool { ahead != nil }
    /// Only if time passes, answers can arrive before decisions.
    var decidesByAnswers: Bool { api.address != nil && url != nil && (isLive || speed != nil) }

    static let options =
        [
            CommandOption(
                "url", value: "URL", effect: "Posts to this endpoint, such as https://127.0.0.1:8443/notifications."),
            CommandOption("ca", value: "FILE", effect: "PEM: authorities to trust in TLS besides those of the system."),
            CommandOption(
                "out", value: "DIR",
                effect: "Writes every payload to a file in DIR, and index.jsonl, instead of posting."),
            CommandOption(
                "root", value: "FILE",
                effect: "Writes the root certificate of the simulated store, for verify.roots."),
            CommandOption("apps", value: "FILE", effect: "Writes the apps of the stories, for the setting apps."),
            CommandOption("truth", value: "FILE", effect: "Writes what really happened, as JSON lines."),
            CommandOption(
                "acknowledged", value: "FILE", effect: "Writes how each post was answered in the end, as JSON lines."),
            CommandOption(
                "seed", value: "N", effect: "Seed of the stories: the same seed and dates give the same bytes (1)."),
            CommandOption("subscribers", value: "N", effect: "Number of subscribers, one story each (100)."),
            CommandOption(
                "environment", value: "production|sandbox|both",
                effect: "Environment of the stories (production); both: a fifth of the subscribers in sandbox."),
            CommandOption(
                "from", value: "DATE",
                effect:
                    "First day, UTC, YYYY-MM-DD, from 2014 on; otherwise such that the last day ended at the last "
                    + "midnight."),
            CommandOption("days", value: "N", effect: "How many days the stories cover (400)."),
            CommandOption("hours", value: "N", effect: "How many hours the stories cover, instead of --days."),
            CommandOption(
                "live",
                effect:
                    "Starts --days or --hours before now: the past is posted at once, the rest when its time comes."
            ),
            CommandOption(
                "ahead", value: "DURATION",
                effect: "With --live: how long the stories continue after now (1h), as 30s or 10m."),
            CommandOption(
                "refunds", value: "PERCENT",
                effect: "Share of subscribers whose story contains a refund request (0)."),
            CommandOption(
                "decide-after", value: "DURATION",
                effect:
                    "Apple decides on refunds within this time, at most 24h (otherwise within 2 to 40 hours, in "
                    + "sandbox a minute)."),
            CommandOption(
                "usage", value: "URL",
                effect:
                    "Plays the app's backend too: posts usage records to this endpoint, such as "
                    + "https://127.0.0.1:8443/usage."),
            CommandOption(
                "usage-token", value: "TOKEN",
                effect: "Bearer token for --usage, or file:PATH to read it from a file."),
            CommandOption(
                "usage-out", value: "FILE", effect: "Writes the usage records, as JSON lines with at and record."),
            CommandOption(
                "speed", value: "N|max",
                effect: "How many times faster than real time (max: as fast as answers arrive)."),
            CommandOption("rate", value: "N", effect: "At most N new posts per second."),
            CommandOption("connections", value: "N", effect: "Posts in flight at the same time (32)."),
            CommandOption(
                "duplicates", value: "PERCENT",
                effect: "Share of notifications that are sent again within an hour (0)."),
            CommandOption("delays", value: "PERCENT", effect: "Share that is sent up to an hour late (0)."),
            CommandOption(
                "reorder", value: "PERCENT",
                effect: "Share that is sent just after the next one of any subscriber (0)."),
            CommandOption(
                "forgeries", value: "PERCENT",
                effect: "Share that is accompanied by a forgery, which ingest has to refuse (0)."),
            CommandOption(
                "retry-scale", value: "N",
                effect: "How many times faster than Apple to retry (3600: an hour is a second)."),
        ] + SimulateAPIOptions.options
}

extension SimulateOptions {
    /// - Parameter now: in milliseconds.
    init(_ invocation: Invocation, now: Int64) throws(SettingFaults) {
        let today = now - now % Self.dayMilliseconds
        var reader = OptionReader(invocation: invocation)
        reader.whole("seed", 0...Int.max) { seed = UInt64($0) }
        reader.whole("subscribers", 1...Simulation.limitSubscribers) { subscribers = $0 }
        reader.whole("days", 1...Self.maxDays) { days = $0 }
        reader.whole("connections", 1...Self.maxConnections) { connections = $0 }
        reader.read("environment", "production, sandbox or both") { text in
            switch text {
            case "production": sandboxPerMille = 0
            case "sandbox": sandboxPerMille = 1000
            case "both": sandboxPerMille = 200
            default: return false
            }
            return true
        }
        if invocation.has("hours") { reader.whole("hours", 1...Self.maxDays * 24) { hours = $0 } }
        if invocation.has("live") { ahead = Self.aheadByDefault }
        reader.duration("ahead") { ahead = $0 }
        from = (isLive ? now : today) - length
        reader.read("from", "an existing day, such as 2026-01-31") { text in
            guard let day = utcDay(text) else { return false }
            from = day
            return true
        }
        reader.factor("retry-scale") { retryScale = $0 }
        reader.factor("rate") { rate = $0 }
        if invocation.option("speed") != "max" { reader.factor("speed") { speed = $0 } }
        reader.percent("refunds") { refunds = $0 }
        reader.duration("decide-after") { decidesWithin = max($0, Self.shortestDecision) }
        reader.percent("duplicates") { duplicates = $0 }
        reader.percent("delays") { delays = $0 }
        reader.percent("reorder") { reorderings = $0 }
        reader.percent("forgeries") { forgeries = $0 }
        url = invocation.option("url")
        authorities = invocation.option("ca")
        payloadFolder = invocation.option("out")
        truth = invocation.option("truth")
        root = invocation.option("root")
        apps = invocation.option("apps")
        acknowledged = invocation.option("acknowledged")
        usage = invocation.option("usage")
        usageFile = invocation.option("usage-out")
        usageToken = reader.secret("usage-token")
        api = SimulateAPIOptions(invocation, &reader)
        if invocation.has("hours"), invocation.has("days") {
            reader.faults.append("--hours replaces --days: give only one of them")
        }
        if !invocation.has("live"), invocation.has("ahead") {
            reader.faults.append("--ahead needs --live: give --live as well")
        }
        if isLive, invocation.has("from") || invocation.has("speed") {
            reader.faults.append("--live runs in real time: remove --from and --speed")
        }
        reader.faults += contradictions
        guard reader.faults.isEmpty else { throw SettingFaults(reader.faults) }
    }

    private var contradictions: [String] {
        var faults: [String] = []
        // Outside of these years every payload would be refused for an expired chain.
        let validity = SimulatedAuthority.validity
        if !validity.contains(from) || !validity.contains(end - 1000) {
            faults.append(
                "--from and --days must lie in the years 2014 to 2049, in which the store's certificates are valid")
        }
        for (name, address) in [("url", url), ("usage", usage)] {
            guard let address, !["http://", "https://"].contains(where: { address.lowercased().hasPrefix($0) }) else {
                continue
            }
            faults.append("--\(name) must begin with https:// or http://, not \(quoted(address))")
        }
        if url != nil, payloadFolder != nil {
            faults.append("--url posts, and --out writes files instead: give only one of them")
        }
        if url == nil, authorities != nil { faults.append("--ca needs --url: give --url as well") }
        if url == nil, acknowledged != nil { faults.append("--acknowledged needs --url: give --url as well") }
        if (usage == nil) != (usageToken == nil) { faults.append("--usage needs --usage-token: give both, or none") }
        if usage != nil, url == nil { faults.append("--usage needs --url: give --url as well") }
        faults += api.contradictions
        if [url, payloadFolder, truth, root, apps, usageFile, api.address?.description].allSatisfy({ $0 == nil }) {
            faults.append("nothing to do: give --url to post, --out to write files, or one of --root, --apps, --truth")
        }
        return faults
    }
}

/// All faults of the options, one sentence each.
struct SettingFaults: Error {
    let texts: [String]
    init(_ texts: [String]) { self.texts = texts }
}

/// Reads optional options, and collects the faults of the others.
struct OptionReader {
    let invocation: Invocation
    var faults: [String] = []

    init(invocation: Invocation) { self.invocation = invocation }

    /// - Parameter take: returns false if the text is not what `expected` says.
    mutating func read(_ name: String, _ expected: String, _ take: (String) -> Bool) {
        guard let text = invocation.option(name), !take(text) else { return }
        faults.append("--\(name) must be \(expected), not \(quoted(text))")
    }

    mutating func whole(_ name: String, _ range: ClosedRange<Int>, _ take: (Int) -> Void) {
        let upTo = range.upperBound == .max ? "up" : "to \(range.upperBound)"
        read(name, "a whole number from \(range.lowerBound) \(upTo)") { text in
            guard let number = decimal(text, upTo: range.upperBound), number >= range.lowerBound else { return false }
            take(number)
            return true
        }
    }

    /// A number above 0, up to a billion, with an optional fraction.
    mutating func factor(_ name: String, _ take: (Double) -> Void) {
        read(name, "a number above 0, such as 60 or 0.5") { text in
            guard let number = plainNumber(text), number > 0, number <= 1e9 else { return false }
            take(number)
            return true
        }
    }

    /// In milliseconds.
    mutating func duration(_ name: String, _ take: (Int64) -> Void) {
        read(name, "a duration up to 24h, such as 30s, 10m or 2h") { text in
            guard let duration = shortDuration(text) else { return false }
            take(duration.components.seconds * 1000)
            return true
        }
    }

    mutating func address(_ name: String, _ take: (ListenAddress) -> Void) {
        read(name, "an address and a port, such as 127.0.0.1:0") { text in
            guard let address = ListenAddress(text) else { return false }
            take(address)
            return true
        }
    }

    /// A secret, or `file:` and the path of a file that contains it.
    mutating func secret(_ name: String) -> String? {
        guard let text = invocation.option(name), text.hasPrefix("file:") else { return invocation.option(name) }
        do throws(FileFault) {
            let bytes = try readFile(String(text.dropFirst("file:".utf8.count)))
            return String(decoding: bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...], as: UTF8.self)
        } catch {
            faults.append("--\(name): \(error)")
            return nil
        }
    }

    mutating func percent(_ name: String, _ take: (Int) -> Void) {
        read(name, "a percentage from 0 to 100 with at most one decimal, such as 2.5") { text in
            guard let number = plainNumber(text), number <= 100 else { return false }
            let perMille = (number * 10).rounded()
            guard abs(perMille - number * 10) < 1e-6 else { return false }
            take(Int(perMille))
            return true
        }
    }
}

/// Digits with at most one point: `Double` would also accept "nan", "0x1p3" and "1e9".
private func plainNumber(_ text: String) -> Double? {
    guard text.utf8.first != UInt8(ascii: "."), text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2E })
    else {
        return nil
    }
    return Double(text)
}

/// Midnight at the beginning of a day written YYYY-MM-DD, in milliseconds since 1970; nil: the day does not exist.
func utcDay(_ text: String) -> Int64? {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.map(\.utf8.count) == [4, 2, 2], let year = decimal(parts[0]), let month = decimal(parts[1], upTo: 12),
        let day = decimal(parts[2]), year >= 1970, month >= 1, day >= 1
    else { return nil }
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    guard day <= lengths[month - 1] else { return nil }
    // Every fourth year since 1972 has one more day; of the years divisible by 100, only every fourth.
    let before = year - 1
    let leapDays = (before / 4 - before / 100 + before / 400) - (1969 / 4 - 1969 / 100 + 1969 / 400)
    let days = (year - 1970) * 365 + leapDays + lengths.prefix(month - 1).reduce(0, +) + day - 1
    return Int64(days) * SimulateOptions.dayMilliseconds
}
