// Every error code that Apple has published, and its meaning.

extension APIErrorCode {
    public static let generalBadRequest = APIErrorCode(rawValue: 4000000)
    public static let invalidAppIdentifier = APIErrorCode(rawValue: 4000002)
    public static let invalidRequestRevision = APIErrorCode(rawValue: 4000005)
    public static let invalidTransactionId = APIErrorCode(rawValue: 4000006)
    public static let invalidOriginalTransactionId = APIErrorCode(rawValue: 4000008)
    public static let invalidExtendByDays = APIErrorCode(rawValue: 4000009)
    public static let invalidExtendReasonCode = APIErrorCode(rawValue: 4000010)
    public static let invalidRequestIdentifier = APIErrorCode(rawValue: 4000011)
    public static let startDateTooFarInPast = APIErrorCode(rawValue: 4000012)
    public static let startDateAfterEndDate = APIErrorCode(rawValue: 4000013)
    public static let invalidPaginationToken = APIErrorCode(rawValue: 4000014)
    public static let invalidStartDate = APIErrorCode(rawValue: 4000015)
    public static let invalidEndDate = APIErrorCode(rawValue: 4000016)
    public static let paginationTokenExpired = APIErrorCode(rawValue: 4000017)
    public static let invalidNotificationType = APIErrorCode(rawValue: 4000018)
    public static let multipleFiltersSupplied = APIErrorCode(rawValue: 4000019)
    public static let invalidTestNotificationToken = APIErrorCode(rawValue: 4000020)
    public static let invalidSort = APIErrorCode(rawValue: 4000021)
    public static let invalidProductType = APIErrorCode(rawValue: 4000022)
    public static let invalidProductId = APIErrorCode(rawValue: 4000023)
    public static let invalidSubscriptionGroupIdentifier = APIErrorCode(rawValue: 4000024)
    public static let invalidExcludeRevoked = APIErrorCode(rawValue: 4000025)
    public static let invalidInAppOwnershipType = APIErrorCode(rawValue: 4000026)
    public static let emptyStorefrontList = APIErrorCode(rawValue: 4000027)
    public static let invalidStorefrontCode = APIErrorCode(rawValue: 4000028)
    public static let invalidRevoked = APIErrorCode(rawValue: 4000030)
    public static let invalidStatus = APIErrorCode(rawValue: 4000031)

    // MARK: Consumption

    public static let invalidAccountTenure = APIErrorCode(rawValue: 4000032)
    public static let invalidAppAccountToken = APIErrorCode(rawValue: 4000033)
    public static let invalidConsumptionStatus = APIErrorCode(rawValue: 4000034)
    public static let invalidCustomerConsented = APIErrorCode(rawValue: 4000035)
    public static let invalidDeliveryStatus = APIErrorCode(rawValue: 4000036)
    public static let invalidLifetimeDollarsPurchased = APIErrorCode(rawValue: 4000037)
    public static let invalidLifetimeDollarsRefunded = APIErrorCode(rawValue: 4000038)
    public static let invalidPlatform = APIErrorCode(rawValue: 4000039)
    public static let invalidPlayTime = APIErrorCode(rawValue: 4000040)
    public static let invalidSampleContentProvided = APIErrorCode(rawValue: 4000041)
    public static let invalidUserStatus = APIErrorCode(rawValue: 4000042)
    public static let transactionNotConsumable = APIErrorCode(rawValue: 4000043)
    public static let invalidRefundPreference = APIErrorCode(rawValue: 4000044)
    public static let transactionTypeNotSupported = APIErrorCode(rawValue: 4000047)
    public static let appTransactionIdNotSupported = APIErrorCode(rawValue: 4000048)
    public static let appAccountTokenNotUUID = APIErrorCode(rawValue: 4000183)
    public static let familyTransactionNotSupported = APIErrorCode(rawValue: 4000185)
    public static let notOriginalTransactionId = APIErrorCode(rawValue: 4000187)
    public static let percentageOfAutoRenewable = APIErrorCode(rawValue: 4000209)

    // MARK: Messages that keep subscribers

    public static let invalidImage = APIErrorCode(rawValue: 4000161)
    public static let headerTooLong = APIErrorCode(rawValue: 4000162)
    public static let bodyTooLong = APIErrorCode(rawValue: 4000163)
    public static let invalidLocale = APIErrorCode(rawValue: 4000164)
    public static let altTextTooLong = APIErrorCode(rawValue: 4000175)
    public static let invalidPerformanceTestRequest = APIErrorCode(rawValue: 4000211)
    public static let invalidRequestId = APIErrorCode(rawValue: 4000212)
    public static let performanceTestRuns = APIErrorCode(rawValue: 4000213)
    public static let badRealtimeURL = APIErrorCode(rawValue: 4000215)
    public static let badImageSize = APIErrorCode(rawValue: 4000216)
    public static let tooManyBulletPoints = APIErrorCode(rawValue: 4000218)
    public static let bulletPointTooLong = APIErrorCode(rawValue: 4000219)
    public static let imageMissing = APIErrorCode(rawValue: 4000224)
    public static let tooManyImages = APIErrorCode(rawValue: 4030014)
    public static let tooManyMessages = APIErrorCode(rawValue: 4030016)
    public static let messageNotApproved = APIErrorCode(rawValue: 4030017)
    public static let imageNotApproved = APIErrorCode(rawValue: 4030018)
    public static let imageInUse = APIErrorCode(rawValue: 4030019)
    public static let noPassingTest = APIErrorCode(rawValue: 4030026)
    public static let imageNotFound = APIErrorCode(rawValue: 4040014)
    public static let messageNotFound = APIErrorCode(rawValue: 4040015)
    public static let performanceTestNotFound = APIErrorCode(rawValue: 4040018)
    public static let defaultMessageNotFound = APIErrorCode(rawValue: 4040020)
    public static let realtimeURLNotFound = APIErrorCode(rawValue: 4040021)
    public static let imageExists = APIErrorCode(rawValue: 4090000)
    public static let messageExists = APIErrorCode(rawValue: 4090001)

    // MARK: Not allowed, not found

    public static let extensionIneligible = APIErrorCode(rawValue: 4030004)
    public static let extensionMaximum = APIErrorCode(rawValue: 4030005)
    public static let extensionOfFamily = APIErrorCode(rawValue: 4030007)
    public static let accountNotFound = APIErrorCode(rawValue: 4040001)
    public static let accountNotFoundRetryable = APIErrorCode(rawValue: 4040002)
    public static let appNotFound = APIErrorCode(rawValue: 4040003)
    public static let appNotFoundRetryable = APIErrorCode(rawValue: 4040004)
    public static let originalTransactionIdNotFound = APIErrorCode(rawValue: 4040005)
    public static let originalTransactionIdNotFoundRetryable = APIErrorCode(rawValue: 4040006)
    public static let notificationURLNotFound = APIErrorCode(rawValue: 4040007)
    public static let testNotificationNotFound = APIErrorCode(rawValue: 4040008)
    public static let extensionRequestNotFound = APIErrorCode(rawValue: 4040009)
    public static let transactionIdNotFound = APIErrorCode(rawValue: 4040010)
    public static let appTransactionNotFound = APIErrorCode(rawValue: 4040019)

    // MARK: Limits and faults

    public static let rateLimitExceeded = APIErrorCode(rawValue: 4290000)
    public static let generalInternal = APIErrorCode(rawValue: 5000000)
    public static let generalInternalRetryable = APIErrorCode(rawValue: 5000001)

    static let meanings: [APIErrorCode: String] = [
        .generalBadRequest: "the request is wrong",
        .invalidAppIdentifier: "the app identifier is not valid",
        .invalidRequestRevision: "the revision is not valid",
        .invalidTransactionId: "the transaction id is not valid",
        .invalidOriginalTransactionId: "the original transaction id is not valid",
        .invalidExtendByDays: "the days of an extension are not from 1 to 90",
        .invalidExtendReasonCode: "the reason for the extension is not valid",
        .invalidRequestIdentifier: "the request identifier is not valid",
        .startDateTooFarInPast: "the start date is too far in the past",
        .startDateAfterEndDate: "the start date is after the end date",
        .invalidPaginationToken: "the pagination token is not valid",
        .invalidStartDate: "the start date is not valid",
        .invalidEndDate: "the end date is not valid",
        .paginationTokenExpired: "the pagination token has expired",
        .invalidNotificationType: "the notification type or subtype is not valid",
        .multipleFiltersSupplied: "only one filter may be given",
        .invalidTestNotificationToken: "the token of the test notification is not valid",
        .invalidSort: "the sort order is not valid",
        .invalidProductType: "the product type is not valid",
        .invalidProductId: "the product id is not valid",
        .invalidSubscriptionGroupIdentifier: "the subscription group is not valid",
        .invalidExcludeRevoked: "the filter for revoked transactions is not valid",
        .invalidInAppOwnershipType: "the ownership type is not valid",
        .emptyStorefrontList: "the list of storefronts is empty",
        .invalidStorefrontCode: "a storefront code is not valid",
        .invalidRevoked: "the filter for revoked transactions is not valid",
        .invalidStatus: "the status is not valid",
        .invalidAccountTenure: "accountTenure is not valid",
        .invalidAppAccountToken: "appAccountToken is not valid",
        .invalidConsumptionStatus: "consumptionStatus is not valid",
        .invalidCustomerConsented: "customerConsented is not true",
        .invalidDeliveryStatus: "deliveryStatus is not valid",
        .invalidLifetimeDollarsPurchased: "lifetimeDollarsPurchased is not valid",
        .invalidLifetimeDollarsRefunded: "lifetimeDollarsRefunded is not valid",
        .invalidPlatform: "platform is not valid",
        .invalidPlayTime: "playTime is not valid",
        .invalidSampleContentProvided: "sampleContentProvided is not valid",
        .invalidUserStatus: "userStatus is not valid",
        .transactionNotConsumable: "the transaction is not of a consumable",
        .invalidRefundPreference: "refundPreference is not valid",
        .transactionTypeNotSupported: "transactions of this type are not supported",
        .appTransactionIdNotSupported: "the id of an app transaction is not supported here",
        .appAccountTokenNotUUID: "the app account token is not a UUID",
        .familyTransactionNotSupported: "family sharing transactions are not supported",
        .notOriginalTransactionId: "the id is not that of an original transaction",
        .percentageOfAutoRenewable: "an auto-renewable subscription has no consumptionPercentage",
        .invalidImage: "the image is not valid",
        .headerTooLong: "the header is too long",
        .bodyTooLong: "the text is too long",
        .invalidLocale: "the locale is not valid",
        .altTextTooLong: "the text for the image is too long",
        .invalidPerformanceTestRequest: "the request for a performance test is not valid",
        .invalidRequestId: "the request id is not valid",
        .performanceTestRuns: "a performance test is running",
        .badRealtimeURL: "the URL is not valid",
        .badImageSize: "the image has the wrong size",
        .tooManyBulletPoints: "there are too many bullet points",
        .bulletPointTooLong: "a bullet point is too long",
        .imageMissing: "the position of the image needs an image",
        .tooManyImages: "there are too many images",
        .tooManyMessages: "there are too many messages",
        .messageNotApproved: "the message is not approved",
        .imageNotApproved: "the image is not approved",
        .imageInUse: "the image is in use",
        .noPassingTest: "no performance test has passed",
        .imageNotFound: "the image is not known",
        .messageNotFound: "the message is not known",
        .performanceTestNotFound: "the performance test is not known",
        .defaultMessageNotFound: "there is no default message",
        .realtimeURLNotFound: "there is no URL",
        .imageExists: "the image exists already",
        .messageExists: "the message exists already",
        .extensionIneligible: "the subscription cannot be extended",
        .extensionMaximum: "the subscription has reached its maximum number of extensions",
        .extensionOfFamily: "a family sharing subscription cannot be extended",
        .accountNotFound: "the account is not known",
        .accountNotFoundRetryable: "the account is not known yet",
        .appNotFound: "the app is not known",
        .appNotFoundRetryable: "the app is not known yet",
        .originalTransactionIdNotFound: "the original transaction is not known",
        .originalTransactionIdNotFoundRetryable: "the original transaction is not known yet",
        .notificationURLNotFound: "the app has no notification URL in this environment",
        .testNotificationNotFound: "the test notification is unknown, not available yet, or not available any more",
        .extensionRequestNotFound: "the request for an extension is not known",
        .transactionIdNotFound: "the transaction is not known",
        .appTransactionNotFound: "the app transaction is not known",
        .rateLimitExceeded: "there were too many requests",
        .generalInternal: "Apple has an internal error",
        .generalInternalRetryable: "Apple has an internal error; a retry may succeed",
    ]
}
