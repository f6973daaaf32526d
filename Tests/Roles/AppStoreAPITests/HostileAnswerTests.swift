import Testing

@testable import AppStoreAPI

@Suite struct `Any bytes as an answer` {
    private static let samples = [
        #"{"testNotificationToken":"ce3af791"}"#,
        #"{"signedPayload":"a.b.c","sendAttempts":[{"attemptDate":1783848585000,"sendAttemptResult":"TIMED_OUT"}]}"#,
        #"{"paginationToken":"n","hasMore":true,"notificationHistory":[{"signedPayload":"x","sendAttempts":[]}]}"#,
        #"{"revision":"r","hasMore":false,"bundleId":"b","appAppleId":5,"environment":"Sandbox","signedTransactions":["a"]}"#,
        #"{"data":[{"subscriptionGroupIdentifier":"g","lastTransactions":[{"status":1,"originalTransactionId":"o"}]}]}"#,
        #"{"signedTransactionInfo":"a.b.c"}"#, #"{"errorCode":4040010,"errorMessage":"x"}"#,
    ].map { Array($0.utf8) }

    private static let pieces = [
        "{", "}", "[", "]", "\"", ",", ":", "null", "true", "-1", "1e999", "\\u0000", "\u{FF}", "é",
    ]

    /// nil: it is an error whose message quotes nothing.
    private func read<Value>(_ bytes: [UInt8], _ request: APIRequest<Value>, _ seed: UInt64) -> Value? {
        do throws(UnreadableAnswer) {
            return try request.read(bytes)
        } catch {
            #expect(!error.words.isEmpty && error.words.utf8.count < 200, "seed \(seed): \(error.words)")
            return nil
        }
    }

    @Test func `ends in a value or an error, and never in more`() {
        let seed = UInt64.random(in: 0...999_999)
        var random = Numbers(seed: seed)
        var (values, errors, codes) = (0, 0, 0)
        let query = NotificationHistoryQuery(startDate: 1, endDate: 2)
        for _ in 0..<20_000 {
            var bytes = Self.samples.randomElement(using: &random)!
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0...3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.removeSubrange(place..<min(place + Int.random(in: 1...9, using: &random), bytes.count))
                case 2: bytes.insert(contentsOf: Self.pieces.randomElement(using: &random)!.utf8, at: place)
                default: bytes.insert(contentsOf: bytes[place...].prefix(20), at: place)
                }
                if bytes.isEmpty { bytes = [UInt8(ascii: "{")] }
            }
            let reads: [Any?] = [
                read(bytes, .testNotification(), seed), read(bytes, .testNotificationStatus(token: "t"), seed),
                read(bytes, .notificationHistory(query), seed), read(bytes, .transactionHistory(of: "1"), seed),
                read(bytes, .subscriptionStatuses(of: "1"), seed), read(bytes, .transactionInfo("1"), seed),
            ]
            for value in reads { if value == nil { errors += 1 } else { values += 1 } }
            if APIError.errorCode(in: bytes) != nil { codes += 1 }
        }
        #expect(values > 10_000 && errors > 10_000 && codes > 500, "\(values), \(errors), \(codes), seed \(seed)")
    }
}
