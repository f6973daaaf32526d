// Why a request to Apple failed.

public import HTTPClient
internal import JSON

/// Contains nothing of the request and no text of the answer: both may contain data of a customer.
public struct APIError: Error, Sendable, Equatable, CustomStringConvertible {
    /// nil: there is no answer.
    public let httpStatus: Int?
    /// Why there is no answer. `invalidRequest`: nothing was sent, because an argument cannot be part of a request.
    /// With a status it is `badAnswer`: Apple reports success, in a form that cannot be read.
    public let fault: HTTPClientFault.Kind?
    /// Apple's error code. nil if the answer comes from another machine on the way, or if Apple refuses the token.
    public let errorCode: APIErrorCode?
    /// Do not retry before this time, in milliseconds since 1970. `RetryAfter` says how odd values are read.
    public let retryAfter: Int64?
    /// Apple's clock, from the head of the answer, in milliseconds since 1970.
    public let serverDate: Int64?
    /// How far the clock of this host was ahead of Apple's when the answer arrived, in milliseconds; negative: behind.
    /// Accurate to one second plus the time that the answer took.
    public let clockAhead: Int64?
    /// For people. Names hosts, and nothing more private.
    public let detail: String

    /// Apple refuses a token if the clock is wrong by more than a minute. A difference of a second or two is only the
    /// time that the answer took.
    static let noticeableClockDifference: Int64 = 30_000

    public init(
        httpStatus: Int? = nil, fault: HTTPClientFault.Kind? = nil, errorCode: APIErrorCode? = nil,
        retryAfter: Int64? = nil, serverDate: Int64? = nil, clockAhead: Int64? = nil, detail: String
    ) {
        self.httpStatus = httpStatus
        self.fault = fault
        self.errorCode = errorCode
        self.retryAfter = retryAfter
        self.serverDate = serverDate
        self.clockAhead = clockAhead
        self.detail = detail
    }

    public var description: String { advice.map { "\(detail): \($0)" } ?? detail }

    /// What a person can do about it; nil: there is nothing to do but wait, or it is not known.
    public var advice: String? {
        if let httpStatus, fault == nil { return advice(status: httpStatus) }
        return switch fault {
        case .nameNotFound?, .notConnected?, .timedOut?:
            "check that this host reaches Apple (apple.api.production, apple.api.sandbox; https_proxy and no_proxy count)"
        case .tls?: "if your own proxy decrypts TLS, set apple.ca to its certificate authority"
        case .badAnswer?:
            "check that apple.api.production and apple.api.sandbox point to Apple and not to a page of a proxy"
        case .invalidRequest?, .broken?, .tooLarge?, .overloaded?, .cancelled?, .withdrawn?, .failed?, nil: nil
        }
    }

    private func advice(status: Int) -> String? {
        switch (status, errorCode) {
        case (401, _): adviceOnToken
        case (403, nil):
            "the key has no right to do this, or a proxy refuses: check the rights of the key, and the proxy"
        case (404, .transactionIdNotFound?), (404, .originalTransactionIdNotFound?):
            "production and sandbox know different transactions: check that the environment is that of the notification"
        case (404, .appNotFound?): "check bundleId in the file of apps, and that the key is of the same account"
        case (404, .notificationURLNotFound?):
            "set the address for notifications of this environment in App Store Connect"
        case (404, nil): "check that apple.api.production and apple.api.sandbox point to Apple"
        case (407, _): "the proxy needs a user name and a password: put them into https_proxy"
        case (429, _): "lower consumption.rate if this lasts: all programs that use the app's key share Apple's limit"
        default: nil
        }
    }

    private var adviceOnToken: String {
        if let clockAhead, abs(clockAhead) > Self.noticeableClockDifference {
            let direction = clockAhead > 0 ? "ahead of" : "behind"
            return "the clock of this host is \(abs(clockAhead) / 1000) s \(direction) Apple's: set it"
        }
        return
            "check that apple.key.id and apple.issuer.id are those of apple.key, that it is an In-App Purchase key and not "
            + "revoked in App Store Connect, and that bundleId in the file of apps is an app of the same account"
    }
}

extension APIError {
    /// There is no answer.
    init(_ fault: HTTPClientFault) {
        self.init(fault: fault.kind, detail: "no answer from Apple (\(fault))")
    }

    /// The status of the answer is not the expected one.
    init(_ response: HTTPClient.Response, expected: Int, now: Int64) {
        let errorCode = Self.errorCode(in: response.body)
        let said = errorCode.map { " (\($0))" } ?? ""
        let isSuccess = (200..<300).contains(response.status)
        self.init(
            response, errorCode: errorCode, now: now,
            detail: "Apple answered \(response.status)\(said)" + (isSuccess ? " where \(expected) is expected" : ""))
    }

    /// The answer reports success but cannot be read.
    init(_ response: HTTPClient.Response, _ unreadable: UnreadableAnswer, now: Int64) {
        self.init(
            response, fault: .badAnswer, now: now,
            detail: "Apple's answer cannot be read: \(unreadable.words)")
    }

    private init(
        _ response: HTTPClient.Response, fault: HTTPClientFault.Kind? = nil, errorCode: APIErrorCode? = nil, now: Int64,
        detail: String
    ) {
        let serverDate = response.header("Date").flatMap(HTTPDate.milliseconds)
        self.init(
            httpStatus: response.status, fault: fault, errorCode: errorCode,
            retryAfter: response.header("Retry-After").flatMap { RetryAfter.milliseconds($0, now: now) },
            serverDate: serverDate, clockAhead: serverDate.map { now - $0 }, detail: detail)
    }

    /// nil: the answer is not a JSON object, or its `errorCode` is not a whole number.
    static func errorCode(in body: [UInt8]) -> APIErrorCode? {
        do throws(UnreadableAnswer) {
            return try AnswerObject(body).optional("errorCode", \.integer).map(APIErrorCode.init(rawValue:))
        } catch {
            return nil
        }
    }
}
