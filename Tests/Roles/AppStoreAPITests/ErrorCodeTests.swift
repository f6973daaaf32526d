import AppStoreAPI
import Testing

@Suite struct `A code of Apple` {
    /// Errors after which Apple allows, or we want, another attempt; after all others there is none.
    private static let repeated: [Int64: APIErrorCode.Repetition] = [
        4_040_002: .later, 4_040_004: .later, 4_040_006: .later, 5_000_000: .later, 5_000_001: .later,
        4_290_000: .atRetryAfter, 4_040_008: .polling, 4_000_017: .fromTheFirstPage,
    ]

    @Test func `says whether to repeat`() {
        #expect(APIErrorCode.known.count == 89)
        for code in APIErrorCode.known {
            #expect(code.repetition == Self.repeated[code.rawValue] ?? .never, "\(code)")
        }
        for code in Self.repeated.keys { #expect(APIErrorCode.known.contains(APIErrorCode(rawValue: code))) }
    }

    @Test func `has the status of its first three digits`() {
        #expect(APIErrorCode.transactionIdNotFound.httpStatus == 404)
        for code in APIErrorCode.known { #expect([400, 403, 404, 409, 429, 500].contains(code.httpStatus), "\(code)") }
    }

    @Test(
        arguments: [
            (4_009_999, .never), (4_080_000, .later), (4_299_999, .atRetryAfter), (5_030_000, .later),
            (5_999_999, .later),
            (0, .never), (-1, .never), (.max, .never), (.min, .never),
        ] as [(Int64, APIErrorCode.Repetition)])
    func `that is new is judged by its first three digits`(_ code: Int64, _ repetition: APIErrorCode.Repetition) {
        let code = APIErrorCode(rawValue: code)
        #expect(code.meaning == nil)
        #expect(code.repetition == repetition)
        #expect(code.description == "\(code.rawValue)")
    }
}
