// Apple's answers. Apple's texts stay texts: a value that is new is not an error.

internal import JSON

public struct APIAnswer<Value: Sendable>: Sendable {
    public let httpStatus: Int
    public let value: Value
    /// Apple's clock, from the head of the answer, in milliseconds since 1970.
    public let serverDate: Int64?

    public init(httpStatus: Int, value: Value, serverDate: Int64?) {
        self.httpStatus = httpStatus
        self.value = value
        self.serverDate = serverDate
    }
}

extension APIAnswer: Equatable where Value: Equatable {}

public struct TestNotificationRequested: Sendable, Equatable, ReadableAnswer {
    public let testNotificationToken: String

    init(_ answer: AnswerObject) throws(UnreadableAnswer) {
        testNotificationToken = try answer.required("testNotificationToken", \.string)
    }
}

public struct TestNotificationStatus: Sendable, Equatable, ReadableAnswer {
    public let signedPayload: String?
    public let sendAttempts: [SendAttempt]

    init(_ answer: AnswerObject) throws(UnreadableAnswer) {
        signedPayload = try answer.optional("signedPayload", \.string)
        sendAttempts = try answer.objects("sendAttempts", SendAttempt.init)
    }
}

/// One attempt of Apple's to deliver a notification.
public struct SendAttempt: Sendable, Equatable {
    /// Milliseconds since 1970.
    public let attemptDate: Int64?
    /// `SUCCESS`, `TIMED_OUT` and others.
    public let sendAttemptResult: String?

    init(_ answer: AnswerObject) throws(UnreadableAnswer) {
        attemptDate = try answer.optional("attemptDate", \.integer)
        sendAttemptResult = try answer.optional("sendAttemptResult", \.string)
    }
}

public struct NotificationHistoryPage: Sendable, Equatable, ReadableAnswer {
    public struct Entry: Sendable, Equatable {
        public let signedPayload: String
        public let sendAttempts: [SendAttempt]

        init(_ answer: AnswerObject) throws(UnreadableAnswer) {
            signedPayload = try answer.required("signedPayload", \.string)
            sendAttempts = try answer.objects("sendAttempts", SendAttempt.init)
        }
    }

    /// Present if `hasMore`.
    public let paginationToken: String?
    public let hasMore: Bool
    public let notificationHistory: [Entry]

    init(_ answer: AnswerObject) throws(UnreadableAnswer) {
        // Without it, it would be unknown whether the listing is complete.
        hasMore = try answer.required("hasMore", \.bool)
        paginationToken =
            hasMore
            ? try answer.required("paginationToken", \.string) : try answer.optional("paginationToken", \.string)
        notificationHistory = try answer.objects("notificationHistory", Entry.init)
    }
}

public struct TransactionHistoryPage: Sendable, Equatable, ReadableAnswer {
    /// Present if `hasMore`.
    public let revision: String?
    public let hasMore: Bool
    public let bundleId: String?
    public let appAppleId: Int64?
    /// `Production` or `Sandbox`.
    public let environment: String?
    public let signedTransactions: [String]

    init(_ answer: AnswerObject) throws(UnreadableAnswer) {
        hasMore = try answer.required("hasMore", \.bool)
        revision = hasMore ? try answer.required("revision", \.string) : try answer.optional("revision", \.string)
        bundleId = try answer.optional("bundleId", \.string)
        appAppleId = try answer.optional("appAppleId", \.integer)
        environment = try answer.optional("environment", \.string)
        signedTransactions = try answer.strings("signedTransactions")
    }
}

public struct SubscriptionStatuses: Sendable, Equatable, ReadableAnswer {
    public struct Group: Sendable, Equatable {
        public let subscriptionGroupIdentifier: String?
        public let lastTransactions: [LastTransaction]

        init(_ answer: AnswerObject) throws(UnreadableAnswer) {
            subscriptionGroupIdentifier = try answer.optional("subscriptionGroupIdentifier", \.string)
            lastTransactions = try answer.objects("lastTransactions", LastTransaction.init)
        }
    }

    public struct LastTransaction: Sendable, Equatable {
        /// Apple's numbers (1 active, 2 expired, 3 billing retry, 4 grace, 5 revoked).
        public let status: Int64?
        public let originalTransactionId: String?
        public let signedTransactionInfo: String?
        public let signedRenewalInfo: String?

        init(_ answer: AnswerObject) throws(UnreadableAnswer) {
            status = try answer.optional("status", \.integer)
            originalTransactionId = try answer.optional("originalTransactionId", \.string)
            signedTransactionInfo = try answer.optional("signedTransactionInfo", \.string)
            signedRenewalInfo = try answer.optional("signedRenewalInfo", \.string)
        }
    }

    /// `Production` or `Sandbox`.
    public let environment: String?
    public let bundleId: String?
    public let appAppleId: Int64?
    public let data: [Group]

    init(_ answer: AnswerObject) throws(UnreadableAnswer) {
        environment = try answer.optional("environment", \.string)
        bundleId = try answer.optional("bundleId", \.string)
        appAppleId = try answer.optional("appAppleId", \.integer)
        data = try answer.objects("data", Group.init)
    }
}

public struct TransactionInfo: Sendable, Equatable, ReadableAnswer {
    public let signedTransactionInfo: String

    init(_ answer: AnswerObject) throws(UnreadableAnswer) {
        signedTransactionInfo = try answer.required("signedTransactionInfo", \.string)
    }
}
