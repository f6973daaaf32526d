import JSON
import KafkaTestKit
import MakeBelieve
import Records
import Testing

@testable import Consumption

/// One body of each kind that can be decided.
private func bodies(_ version: Interop.ConsumptionVersion) throws -> [(said: String, body: [UInt8])] {
    var bodies: [(String, [UInt8])] = []
    let deliveries = [nil] + DeliveryStatus.allCases.map(\.rawValue)
    let preferences = [nil] + RefundPreference.allCases.map(\.rawValue)
    var number: Int64 = 0
    for purchase in [[:], Bought.subscription, Bought.pass, Bought.forEver] {
        for delivery in deliveries {
            for preference in preferences {
                for percentage in [nil, 0, 1, 99_999, 100_000] {
                    number += 1
                    var members = [#""consented":true"#, #""sampleContentProvided":\#(number % 2 == 0)"#]
                    if let delivery { members.append("\"deliveryStatus\":\"\(delivery)\"") }
                    if let preference { members.append("\"refundPreference\":\"\(preference)\"") }
                    if let percentage { members.append("\"consumptionPercentage\":\(percentage)") }
                    members.append(#""userStatus":\#(number % 5),"platform":\#(number % 3)"#)
                    members.append(
                        #""accountCreatedAt":\#(asked - number * 2 * day),"playTimeSeconds":\#(number * number)"#)
                    var desk = Desk()
                    try desk.say(members.joined(separator: ","))
                    try desk.ask("q", version == .v1 ? purchase.merging(Bought.advanced) { $1 } : purchase)
                    try desk.pass(until: asked + hour)
                    bodies.append((members.joined(separator: ","), try #require(desk.decision?.body)))
                }
            }
        }
    }
    return bodies
}

@Suite(.enabled(if: Interop.isInstalled, Comment(rawValue: Interop.absence)))
struct `Every body that can be decided` {
    @Test(arguments: [Interop.ConsumptionVersion.v2, .v1])
    func `is one that Apple's own library can read`(version: Interop.ConsumptionVersion) async throws {
        let bodies = try bodies(version)
        let opinions = try await Interop.opinions(on: bodies.map { (version, $0.body) })
        #expect(opinions.count == bodies.count && bodies.count == 480)
        for (made, opinion) in zip(bodies, opinions) {
            #expect(opinion.isTaken, "\(opinion.words) \(made.said) \(String(decoding: made.body, as: UTF8.self))")
        }
    }

    @Test func `says there what it was meant to say`() async throws {
        var desk = Desk()
        try desk.say(#"\#(whole),"refundPreference":"GRANT_PRORATED","sampleContentProvided":true"#)
        try desk.ask()
        let opinions = try await Interop.opinions(on: [(.v2, try #require(desk.body.map { Array($0.utf8) }))])
        let words = try #require(opinions.first).words
        for word in ["40000", "DELIVERED", "GRANT_PRORATED"] { #expect(words.contains(word), "\(words)") }
    }
}
