// What comes to the make-believe App Store Server API, and what it makes of it.

public import Contract

/// One request as it came.
public struct APIRequest: Sendable {
    public var method: String
    /// Without the query.
    public var path: String
    /// In the order of the wire.
    public var headers: [(name: String, value: String)]
    public var body: [UInt8]

    public init(method: String, path: String, headers: [(name: String, value: String)], body: [UInt8]) {
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
    }

    /// Header names are told apart without regard to case, of ASCII letters only.
    func values(of name: String) -> [String] {
        func lower(_ text: String) -> [UInt8] { text.utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 } }
        let wanted = lower(name)
        return headers.filter { lower($0.name) == wanted }.map(\.value)
    }
}

/// What Apple knows of a transaction that somebody asks about.
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

/// What an id in a path names.
public enum FoundTransaction: Sendable, Equatable {
    case transaction(KnownTransaction)
    /// The id of an app transaction, which these endpoints do not take.
    case appTransaction
}

/// What a developer has said of a refund.
public enum RefundAnswer: String, Sendable, CaseIterable {
    /// Nobody can know: the story lies in the past, and there is no API.
    case unknown
    /// Nothing was sent.
    case none
    /// Facts without a preference.
    case noPreference
    case grantFull, grantProrated, decline
}

/// The answer to one request. Causes are Apple's numbers; the words are for people who read a log.
public struct APIVerdict: Sendable, Equatable {
    public enum Version: Int, Sendable { case v1 = 1, v2 }

    public var status: Int
    /// nil: Apple sends no JSON with it.
    public var errorCode: Int?
    public var message: String
    /// Of 405: the methods that there are.
    public var allow: String?
    /// nil until the path was understood.
    public var version: Version?
    public var transactionId: String?
    /// Of a token that holds.
    public var bundleId: String?
    /// Of 202: what was said.
    public var answer: RefundAnswer?

    init(status: Int, errorCode: Int? = nil, message: String) {
        self.status = status
        self.errorCode = errorCode
        self.message = message
    }
}
