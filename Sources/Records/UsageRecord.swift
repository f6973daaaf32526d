// Records of `usage`: what an app's own backend says of a purchase.

public import JSON

public struct UsageRecord: Sendable {
    public let originalTransactionId: String
    /// JSON as it came.
    public let value: [UInt8]

    /// Why one is refused: a reason for `POST /usage`, naming the member.
    public struct Fault: Error, Equatable { public let reason: String }

    public init(_ json: JSONValue) throws(Fault) { fatalError("to be written") }
}
