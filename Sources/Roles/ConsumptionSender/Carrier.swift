// Delivers an answer to Apple.

public import AppStoreAPI
public import Contract
internal import HTTPClient
internal import Notices

/// One attempt.
public struct Dispatch: Sendable {
    public let bundleId: String
    public let transactionId: String
    public let isV1: Bool
    public let body: [UInt8]
    /// Called right before the bytes are sent.
    public let mayBegin: @Sendable () -> Bool
}

/// The result of an attempt.
public struct Delivery: Sendable {
    public enum Result: Sendable, Equatable {
        /// Nothing was sent: `mayBegin` returned false, or there was no room.
        case withdrawn
        case answered(status: Int)
        /// The reason, for people.
        case unanswered(String)
    }

    public var result: Result
    public var errorCode: Int64?
    /// In milliseconds since 1970.
    public var retryAfter: Int64?
    /// How far this host's clock is ahead of Apple's, in milliseconds; nil: Apple did not say.
    public var clockAhead: Int64?
    /// For people: what to do.
    public var advice: String?

    public init(
        _ result: Result, errorCode: Int64? = nil, retryAfter: Int64? = nil, clockAhead: Int64? = nil,
        advice: String? = nil
    ) {
        self.result = result
        self.errorCode = errorCode
        self.retryAfter = retryAfter
        self.clockAhead = clockAhead
        self.advice = advice
    }
}

public protocol Carrier: Sendable {
    /// Never blocks. `completion` is called once, on any thread, perhaps before this returns.
    func send(_ dispatch: Dispatch, completion: @escaping @Sendable (Delivery) -> Void)
    /// Apple did not accept the token: the next attempt of the app uses a new one.
    func renewToken(of bundleId: String)
}

/// Apple's own servers, or those that `apple.api.*` names instead.
public struct AppStoreCarrier: Carrier {
    private let api: AppStoreServerAPI
    private let environment: Contract.Environment
    private let now: @Sendable () -> Int64

    public init(_ api: AppStoreServerAPI, _ environment: Contract.Environment, now: @escaping @Sendable () -> Int64) {
        self.api = api
        self.environment = environment
        self.now = now
    }

    public func send(_ dispatch: Dispatch, completion: @escaping @Sendable (Delivery) -> Void) {
        let request: APIRequest<ConsumptionAccepted> =
            dispatch.isV1
            ? .consumptionV1(transactionId: dispatch.transactionId, body: dispatch.body)
            : .consumptionV2(transactionId: dispatch.transactionId, body: dispatch.body)
        api.send(request, of: dispatch.bundleId, in: environment, mayBegin: dispatch.mayBegin) { [now] result in
            switch result {
            case .success(let answer):
                let ahead = answer.serverDate.map { now() - $0 }
                completion(Delivery(.answered(status: answer.httpStatus), clockAhead: ahead))
            case .failure(let error): completion(Delivery(error))
            }
        }
    }

    public func renewToken(of bundleId: String) { api.renewToken(of: bundleId) }
}

extension Delivery {
    init(_ error: APIError) {
        let result: Result =
            if let status = error.httpStatus {
                .answered(status: status)
            } else if error.fault == .withdrawn || error.fault == .overloaded {
                .withdrawn
            } else {
                .unanswered(error.detail)
            }
        self.init(
            result, errorCode: error.errorCode?.rawValue, retryAfter: error.retryAfter, clockAhead: error.clockAhead,
            advice: error.advice)
    }
}
