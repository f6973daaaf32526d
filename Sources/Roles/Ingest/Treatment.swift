// How ingest treats a payload that it does not accept.

import AppStore

enum Treatment {
    /// Answered 413; not stored.
    case tooLarge
    /// Answered 400; stored while there is room.
    case refuse
    /// Only Apple can have made it: stored and answered 200, to be redriven when the reason no longer applies.
    case quarantine
    /// It came from Apple's network, but its certificate chain is not trusted: stored, and Apple should retry, because
    /// its chain may have changed.
    case keepAndAskAgain
}

extension RejectionReason {
    func treatment(fromApple: Bool) -> Treatment {
        switch self {
        case .tooLarge: .tooLarge
        case .malformed, .badAlgorithm, .badChainLength, .badSignature: .refuse
        case .badCertificate, .untrustedChain, .missingMarker, .expiredChain, .revoked:
            fromApple ? .keepAndAskAgain : .refuse
        case .wrongApp, .wrongEnvironment, .inconsistent, .inFuture: .quarantine
        }
    }
}
