// Requests to the simulated App Store Server API, and its verdicts.

public import Contract

/// One request as received.
public struct APIRequest: Sendable {
    public var method: String
    /// Without the query.
    public var path: String
    /// In the order of transmission.
    public var headers: [(name: String, value: String)]
    public var body: [UInt8]

    public init(method: String, path: String, headers: [(name: String, value: String)], body: [UInt8]) {
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
    }

    /// Compares header names without regard to the case of ASCII letters.
    func values(of name: String) -> [String] {
        func lower(_ text: String) -> [UInt8] { text.utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 } }
        let wanted = lower(name)
        return headers.filter { lower($0.name) == wanted }.map(\.value)
    }
}

/// What Apple knows about the transaction in a request.
public struct KnownTransaction: Sendable, Equatable {
    public var transactionId: String
    public var originalTransactionId: String
    public var bundleId: String
    public var environment: Contract.Environment
    /// Apple's word, such as "Consumable".
    public var type: String
    public var isFamilyShared: Bool
    public var isAdvancedCommerce: Bool

    public init(
        transactionId: String, originalTransactionId: String, bundleId: String, environment: Contract.Environment,
        type: String, isFamilyShared: Bool = false, isAdvancedCommerce: Bool = false
    ) {
        self.transactionId = transactionId
        self.originalTransactionId = originalTransactionId
        self.bundleId = bundleId
        self.environment = environment
        self.type = type
        self.isFamilyShared = isFamilyShared
        self.isAdvancedCommerce = isAdvancedCommerce
    }
}

/// What an id in a path refers to.
public enum FoundTransaction: Sendable, Equatable {
    case transaction(KnownTransaction)
    /// The id of an app transaction, which these endpoints reject.
    case appTransaction
}

/// The developer's answer to a refund request.
public enum RefundAnswer: String, Sendable, CaseIterable {
    /// Unknown: the story lies in the past, and there is no API.
    case unknown
    /// Nothing was sent.
    case none
    /// Facts without a preference.
    case noPreference
    case grantFull, grantProrated, decline
}

/// The verdict on one request. Causes are Apple's numbers; the message is for people who read a log.
public struct APIVerdict: Sendable, Equatable {
    public enum Version: Int, Sendable { case v1 = 1, v2 }

    public var status: Int
    /// nil: Apple sends no JSON with it.
    public var errorCode: Int?
    public var message: String
    /// For 405: the allowed methods.
    public var allow: String?
    /// nil if the path was not recognised.
    public var version: Version?
    public var transactionId: String?
    /// From a valid token.
    public var bundleId: String?
    /// For 202: the answer that was accepted.
    public var answer: RefundAnswer?

    init(status: Int, errorCode: Int? = nil, message: String) {
        self.status = status
        self.errorCode = errorCode
        self.message = message
    }
}
