// The initial corpus: genuine inputs, because random search never finds a certificate or a signature.

import Crypto
import Glibc

func writeSeeds(below folder: String) {
    let world = World.shared
    write(Array("eyJhbGciOiJFUzI1NiJ9".utf8), to: "\(folder)/base64/url")
    write(Array("AQIDBA==".utf8), to: "\(folder)/base64/padded")
    write(
        Array(#"{"a":[1,-2.5e3,"\u00e9\ud83d\ude00",true,false,null,{}],"b":9223372036854775807}"#.utf8),
        to: "\(folder)/json/all")
    write(world.leaf.der, to: "\(folder)/certificate/leaf")
    write(world.intermediate.der, to: "\(folder)/certificate/intermediate")
    write(world.genuine, to: "\(folder)/jws/genuine")
    for (name, payload) in World.payloads { write(Array(payload.utf8), to: "\(folder)/payload/\(name)") }
    for (name, story) in World.stories { write(Array(story.utf8), to: "\(folder)/facts/\(name)") }
    for (name, state) in World.states { write(state, to: "\(folder)/state/\(name)") }
    for (name, state) in World.countedStates { write(state, to: "\(folder)/counts/\(name)") }
    for (name, usage) in World.usages { write(Array(usage.utf8), to: "\(folder)/usage/\(name)") }
    for (name, state) in World.refundStates { write(state, to: "\(folder)/refunds/\(name)") }
    for (name, answer) in Issuer.seeds { write(answer, to: "\(folder)/ocsp/\(name)") }
    for (name, head) in headSeeds { write(Array(head.utf8), to: "\(folder)/heads/\(name)") }
    for (name, policy) in World.policies { write(Array(policy.utf8), to: "\(folder)/policy/\(name)") }
    write(Array("{\"signedPayload\":\"a.b.c\"}".utf8), to: "\(folder)/body/notification")
    write(
        Array(
            """
            {"v":1,"originalTransactionId":"2000000123456789","transactionId":null,"consented":true,"consentedAt":1,\
            "deliveryStatus":"DELIVERED","sampleContentProvided":false,"consumptionPercentage":50000,\
            "refundPreference":null,"accountCreatedAt":1,"playTimeSeconds":0,"userStatus":1,"platform":1}
            """.utf8), to: "\(folder)/body/usage")
}

private func write(_ bytes: [UInt8], to path: String) {
    guard let file = fopen(path, "w"), fwrite(bytes, 1, bytes.count, file) == bytes.count, fclose(file) == 0 else {
        fatalError("\(path) cannot be written")
    }
}
