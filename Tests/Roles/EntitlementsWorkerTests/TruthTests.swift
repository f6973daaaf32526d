import JSON
import Testing
import TruthCheck

@Suite struct `The truth about access` {
    /// A period is refunded, and the next one is paid before it begins.
    private static let refundedThenRenewed = [
        #"{"kind":"access","originalTransactionId":"1","productId":"p","transactionId":"1","from":0,"until":500,"#
            + #""rule":"paid","revokedAt":500}"#,
        #"{"kind":"access","originalTransactionId":"1","productId":"p","transactionId":"2","from":2000,"until":3000,"#
            + #""rule":"paid"}"#,
        #"{"kind":"final","originalTransactionId":"1","state":"revoked","reason":"refund","asOf":1000}"#,
    ]

    @Test(arguments: [(500, []), (3000, ["1: access ended at 3000 and not at 500"])] as [(Int64, [String])])
    func `is that it ended with the refund, until the next period begins`(_ until: Int64, _ faults: [String]) throws {
        let truth = try TruthCheck(lines: Self.refundedThenRenewed.map { Array($0.utf8) }, leeway: 100)
        let record = try JSONValue.read(
            Array(
                (#"{"state":"revoked","reason":"refund","access":false,"accessUntil":\#(until),"since":0,"#
                    + #""runs":[{"start":2000,"end":3000}]}"#).utf8))
        #expect(truth.wrong(entitlements: ["1": record], accounts: [:], clock: 1000) == faults)
    }
}
