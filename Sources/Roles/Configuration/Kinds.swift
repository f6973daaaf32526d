// Kinds of values that only this product has.

import Contract
import Platform
import Settings
import Zone

/// The values of `environment`.
public enum EnvironmentChoice: String, Sendable, CaseIterable {
    case production, sandbox, both

    /// Production first.
    var environments: [Contract.Environment] {
        switch self {
        case .production: [.production]
        case .sandbox: [.sandbox]
        case .both: [.production, .sandbox]
        }
    }
}

public enum OCSPMode: String, Sendable, CaseIterable { case off, soft, hard }

/// The number of a replica, the same after a restart.
public enum WorkerSlot: Sendable, Hashable {
    case fixed(Int)
    case auto

    /// Kubernetes names the pods of a StatefulSet like this. The limit is above any number of replicas; a longer number
    /// is a random name.
    static let limit = 9999

    /// nil: the value is `auto`, and the host name does not end in a dash and a number. Other names that end in digits
    /// are often random, such as those of containers: after a restart the number would differ, or be that of a running
    /// replica.
    public func number(hostName: String) -> Int? {
        switch self {
        case .fixed(let number): return number
        case .auto:
            let name = hostName.utf8
            guard let dash = name.lastIndex(of: UInt8(ascii: "-")), dash != name.startIndex else { return nil }
            let digits = name[name.index(after: dash)...]
            guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            return Int(String(decoding: digits, as: UTF8.self)).flatMap { $0 <= Self.limit ? $0 : nil }
        }
    }
}

/// `http` or `https`, a host, optionally a port and a path, without a slash at the end.
public struct BaseURL: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    public init?(_ text: String) {
        let scheme = ["https://", "http://"].first { text.hasPrefix($0) }
        guard let scheme, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else { return nil }
        let rest = text.dropFirst(scheme.count)
        // A query would take in the path that is appended, and a user name does not belong in an address.
        guard let first = rest.first, first != "/", first != ":", !rest.contains(where: { "?#@\\".contains($0) }) else {
            return nil
        }
        let slashes = text.reversed().prefix { $0 == "/" }.count
        description = String(text.dropLast(slashes))
    }
}

extension SettingKind where Value == BaseURL {
    static var baseURL: SettingKind {
        SettingKind("URL") { text throws(SettingProblem) in
            guard let url = BaseURL(text) else {
                // The text may contain a password before the host.
                throw SettingProblem(
                    "an http or https address without user and query, such as https://api.example.com",
                    hidesValue: true)
            }
            return url
        }
    }
}

extension SettingKind where Value == TopicPrefix {
    static var topicPrefix: SettingKind {
        SettingKind("letters, digits, \".\", \"_\", \"-\", at most \(TopicPrefix.limitBytes)") {
            text throws(SettingProblem) in
            guard let prefix = TopicPrefix(text) else {
                throw SettingProblem(
                    "1 to \(TopicPrefix.limitBytes) letters, digits, dots, underscores and dashes, as Kafka takes them")
            }
            return prefix
        }
    }
}

extension SettingKind where Value == WorkerSlot {
    static var workerSlot: SettingKind {
        SettingKind("auto or 0 to \(WorkerSlot.limit)") { text throws(SettingProblem) in
            if text == "auto" { return .auto }
            guard let number = decimal(text, upTo: WorkerSlot.limit) else {
                throw SettingProblem("auto or a whole number from 0 to \(WorkerSlot.limit)")
            }
            return .fixed(number)
        }
    }
}

extension SettingKind where Value == String {
    /// Sent in an HTTP header.
    static var bearerToken: SettingKind {
        SettingKind("token") { text throws(SettingProblem) in
            guard isBearerToken(text) else {
                throw SettingProblem("visible ASCII without blanks, at most 4096 characters")
            }
            return text
        }
    }

    static func isBearerToken(_ text: String) -> Bool {
        (1...4096).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    /// The name of a time zone. The code that counts its days finds out whether the zone's data exists.
    static var zone: SettingKind {
        SettingKind("IANA time zone") { text throws(SettingProblem) in
            guard Zone.isName(text) else {
                throw SettingProblem("the name of a time zone, such as UTC or Europe/Berlin")
            }
            return text
        }
    }

    /// An identifier of Apple's developer site.
    static var identifier: SettingKind {
        SettingKind("identifier") { text throws(SettingProblem) in
            guard (1...64).contains(text.utf8.count),
                text.utf8.allSatisfy({ isLetterOrDigit($0) || $0 == UInt8(ascii: "-") })
            else { throw SettingProblem("the identifier shown in App Store Connect: letters, digits and dashes") }
            return text
        }
    }
}

extension SettingKind where Value == [String] {
    /// Shorter tokens can be guessed.
    static let leastTokenBytes = 16

    /// All of them are valid at once, so a new token can be distributed before the old one is removed.
    static var bearerTokens: SettingKind {
        SettingKind("tokens, several separated by commas") { text throws(SettingProblem) in
            let tokens = text.split(separator: ",", omittingEmptySubsequences: false).map {
                String($0.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
            }
            guard tokens.allSatisfy({ $0.utf8.count >= leastTokenBytes && SettingKind<String>.isBearerToken($0) })
            else {
                throw SettingProblem(
                    "one or more tokens, separated by commas, each of \(leastTokenBytes) to 4096 visible ASCII characters "
                        + "without blanks, as openssl rand -hex 16 makes them")
            }
            return tokens
        }
    }
}

func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
}
