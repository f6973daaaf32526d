// Why a payload is rejected.

public import Contract

/// These names are public: metric labels and headers of `rejected`.
public enum RejectionReason: String, Sendable, CaseIterable {
    case tooLarge = "too_large"
    case malformed
    case badAlgorithm = "bad_algorithm"
    case badChainLength = "bad_chain_length"
    case badCertificate = "bad_certificate"
    case untrustedChain = "untrusted_chain"
    case missingMarker = "missing_marker"
    case expiredChain = "expired_chain"
    case revoked
    case badSignature = "bad_signature"
    case wrongApp = "wrong_app"
    case wrongEnvironment = "wrong_environment"
    case inconsistent
    case inFuture = "in_future"
}

public struct Rejection: Error, Sendable, Equatable, CustomStringConvertible {
    public let reason: RejectionReason
    /// For people. Names members and parts. Quotes only values that Apple has signed and that say to whom a payload
    /// belongs.
    public let detail: String
    /// Known only if chain and signature of the outer payload are valid and it names one of the two.
    public let environment: Contract.Environment?
    /// The app that a payload of `wrongApp` names, if the name can be a bundle id.
    public let bundleId: String?

    public init(
        _ reason: RejectionReason, _ detail: String, environment: Contract.Environment? = nil, bundleId: String? = nil
    ) {
        self.reason = reason
        self.detail = detail
        self.environment = environment
        self.bundleId = bundleId
    }

    func told(of environment: Contract.Environment?) -> Rejection {
        Rejection(reason, detail, environment: environment, bundleId: bundleId)
    }

    public var description: String { "\(reason.rawValue): \(detail)" }
}
