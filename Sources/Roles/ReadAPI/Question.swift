// A request to the read API: its path and its query.

internal import Churn
internal import Contract
internal import Entitlements
internal import HTTP

/// Everything here comes from outside: bytes that may be anything.
enum Question: Equatable {
    case subscription(id: [UInt8])
    case content(id: [UInt8], published: [Int64], scope: ContentScope)
    /// - Parameter before: a sequence; nil: the answer starts with the newest event.
    case history(id: [UInt8], before: Int64?)
    /// In lower case.
    case account(token: String)
    case metrics(MetricsRequest)
    /// The requests of a subscription.
    case refunds(id: [UInt8])
    /// By the notification that opened the request.
    case refund(id: [UInt8])

    /// A path that exists; the rest of the request may still be wrong.
    enum Route: Int, CaseIterable {
        case subscription, content, account, metrics, refunds, refund, history

        /// For labels.
        var name: String {
            switch self {
            case .subscription: "subscription"
            case .content: "content"
            case .account: "account"
            case .metrics: "metrics"
            case .refunds: "refunds"
            case .refund: "refund"
            case .history: "history"
            }
        }
    }

    /// The known parameters; environment is known everywhere.
    static func parameterNames(of route: Route) -> [String] {
        let own =
            switch route {
            case .content: [published, scope]
            case .history: [before]
            case .metrics: metricsNames
            case .subscription, .account, .refunds, .refund: [String]()
            }
        return own + [environmentName]
    }

    /// What the client must correct.
    enum Flaw: Error, Equatable {
        /// - Parameter reason: for people, if the name alone does not explain it.
        case invalid(parameter: String, reason: String? = nil)
        case missing(parameter: String)
        case tooMany(parameter: String, limit: Int)
    }

    /// Apple's ids have some twenty digits; other texts that are used as ids are no longer than this either.
    static let limitIDBytes = 256
    /// With commas these fit into the head of a request, of 16 KiB: nineteen years of a weekly magazine. A list cannot
    /// be split into several requests, because the newest item at the start of a period is chosen from all of them.
    static let limitDates = 1000

    private static let originalTransactionId = "originalTransactionId"
    private static let notificationUUID = "notificationUUID"
    private static let appAccountToken = "appAccountToken"
    private static let published = "published"
    private static let scope = "scope"
    private static let before = "before"
    static let environmentName = "environment"

    /// nil: there is no such path.
    static func route(_ path: String) -> (route: Route, subject: Substring.UTF8View)? {
        let slash = UInt8(ascii: "/")
        if let rest = rest(of: path, behind: "/v1/subscriptions/") {
            let id = rest.prefix { $0 != slash }
            if id.isEmpty { return nil }
            if id.endIndex == rest.endIndex { return (.subscription, id) }
            let part = rest[id.endIndex...]
            if part.elementsEqual("/refunds".utf8) { return (.refunds, id) }
            if part.elementsEqual("/history".utf8) { return (.history, id) }
            return part.elementsEqual("/content".utf8) ? (.content, id) : nil
        }
        if let rest = rest(of: path, behind: "/v1/metrics"), rest.isEmpty { return (.metrics, rest) }
        if let id = rest(of: path, behind: "/v1/refunds/") {
            return id.isEmpty || id.contains(slash) ? nil : (.refund, id)
        }
        guard let token = rest(of: path, behind: "/v1/accounts/"), !token.isEmpty, !token.contains(slash) else {
            return nil
        }
        return (.account, token)
    }

    private static func rest(of path: String, behind start: String) -> Substring.UTF8View? {
        path.utf8.starts(with: start.utf8) ? path.utf8.dropFirst(start.utf8.count) : nil
    }

    init(_ route: Route, _ subject: Substring.UTF8View, query: String?) throws(Flaw) {
        switch route {
        case .subscription:
            self = .subscription(id: try Self.id(subject))
        case .content:
            let id = try Self.id(subject)
            let (published, scope) = try Self.dates(query ?? "")
            self = .content(id: id, published: published, scope: scope)
        case .account:
            guard let bytes = percentDecoded(subject), let token = AppAccountToken.canonical(bytes) else {
                throw .invalid(parameter: Self.appAccountToken)
            }
            self = .account(token: token)
        case .metrics: self = .metrics(try Self.metrics(query ?? ""))
        case .history: self = .history(id: try Self.id(subject), before: try Self.before(query ?? ""))
        case .refunds: self = .refunds(id: try Self.id(subject))
        case .refund: self = .refund(id: try Self.id(subject, parameter: Self.notificationUUID))
        }
    }

    private static func id(
        _ text: Substring.UTF8View, parameter: String = originalTransactionId
    ) throws(Flaw) -> [UInt8] {
        // At most three bytes for each: a longer text need not be decoded.
        guard text.count <= 3 * limitIDBytes, let id = percentDecoded(text), (1...limitIDBytes).contains(id.count),
            String(validating: id, as: UTF8.self) != nil
        else { throw .invalid(parameter: parameter) }
        return id
    }

    // MARK: The query

    /// The requested environment; nil: the question is about all served environments.
    ///
    /// - Parameter served: the served environments.
    static func environment(_ query: String?, served: [Environment]) throws(Flaw) -> Environment? {
        guard let query else { return nil }
        var asked: Environment?
        for (name, value) in parameters(query) where name.elementsEqual(environmentName.utf8) {
            guard asked == nil else { throw .tooMany(parameter: environmentName, limit: 1) }
            guard let value, let environment = Environment(rawValue: String(decoding: value, as: UTF8.self)),
                served.contains(environment)
            else {
                let words = served.map(\.rawValue).joined(separator: " or ")
                throw .invalid(parameter: environmentName, reason: "it must be \(words)")
            }
            asked = environment
        }
        return asked
    }

    /// A name with an invalid escape stays as it was written, and is never a known name. A value with an invalid escape
    /// is nil.
    static func parameters(_ query: String) -> [(name: [UInt8], value: [UInt8]?)] {
        query.utf8.split(separator: UInt8(ascii: "&")).map { pair in
            let sides = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return (percentDecoded(sides[0]) ?? Array(sides[0]), sides.count == 2 ? percentDecoded(sides[1]) : [])
        }
    }

    /// Other parameters are ignored.
    private static func dates(_ query: String) throws(Flaw) -> ([Int64], ContentScope) {
        var dates: [Int64] = []
        var scope: ContentScope?
        for (name, value) in parameters(query) {
            if name.elementsEqual(published.utf8) {
                for text in (value ?? []).split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
                    guard let date = milliseconds(text) else { throw .invalid(parameter: published) }
                    guard dates.count < limitDates else { throw .tooMany(parameter: published, limit: limitDates) }
                    dates.append(date)
                }
            } else if name.elementsEqual(Self.scope.utf8) {
                guard scope == nil else { throw .tooMany(parameter: Self.scope, limit: 1) }
                guard let value, let known = contentScope(value) else {
                    throw .invalid(parameter: Self.scope)
                }
                scope = known
            }
        }
        // A request without dates has probably misspelt the parameter.
        if dates.isEmpty { throw .missing(parameter: published) }
        return (dates, scope ?? .archive)
    }

    /// Other parameters are ignored.
    private static func before(_ query: String) throws(Flaw) -> Int64? {
        var found: Int64?
        for (name, value) in parameters(query) where name.elementsEqual(before.utf8) {
            guard found == nil else { throw .tooMany(parameter: before, limit: 1) }
            guard let sequence = value.flatMap({ milliseconds($0[...]) }), sequence >= 0 else {
                throw .invalid(
                    parameter: before, reason: "it must be a sequence: the member before of the previous page")
            }
            found = sequence
        }
        return found
    }

    private static func contentScope(_ word: [UInt8]) -> ContentScope? {
        switch String(decoding: word, as: UTF8.self) {
        case "archive": .archive
        case "current": .current
        default: nil
        }
    }

    /// Digits, with a sign for dates before 1970.
    private static func milliseconds(_ text: ArraySlice<UInt8>) -> Int64? {
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = text.dropFirst(isNegative ? 1 : 0)
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(String(decoding: text, as: UTF8.self))
    }
}

/// Decodes a part of a target; nil: it has an invalid escape. A plus stays a plus.
func percentDecoded(_ text: Substring.UTF8View) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    var rest = text.makeIterator()
    while let byte = rest.next() {
        guard byte == UInt8(ascii: "%") else {
            bytes.append(byte)
            continue
        }
        guard let high = rest.next().flatMap(hexDigit), let low = rest.next().flatMap(hexDigit) else { return nil }
        bytes.append(high << 4 | low)
    }
    return bytes
}

private func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
}
