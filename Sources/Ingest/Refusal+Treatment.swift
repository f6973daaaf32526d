// What becomes of a payload that is not taken.

import AppStore

enum Treatment {
    /// 413; nothing is kept.
    case tooLarge
    /// 400; kept while there is room.
    case refuse
    /// Nobody but Apple can have made it: kept and answered 200, to be redriven when the reason has gone.
    case quarantine
    /// From Apple's network, and yet not of a chain that is trusted: kept, and Apple is to come again, because its chain may
    /// have changed.
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
