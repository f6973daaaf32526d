// Parsers of what Apple, or an attacker, posts.

import AppStore
import JSON
import Records

/// Only the text that was signed is accepted.
let jws: Target = { bytes, count in
    let text = input(bytes, count)
    let world = World.shared
    if (try? world.verifier.notification(text, now: World.now)) != nil {
        precondition(text == world.genuine, "a forged notification was accepted")
    }
    for kind in PayloadKind.allCases where (try? world.verifier.decoded(text, as: kind, now: World.now)) != nil {
        precondition(text == world.genuine, "a forged \(kind) was taken")
    }
    return 0
}

/// Whatever a signed payload contains, its record is one JSON object without repeated names. Objects in the place of texts with a
/// signature of their own are signed first.
let payload: Target = { bytes, count in
    let world = World.shared
    let text = world.signed(withPartsSigned(input(bytes, count)))
    if let notification = try? world.verifier.notification(text, now: World.now) {
        let value = NotificationRecord.value(notification, receivedDate: World.now, source: .push)
        precondition((try? JSONValue.read(value))?.object != nil, "a record is no JSON object")
        precondition(!notification.key.isEmpty, "a record without a key")
    }
    for kind in PayloadKind.allCases {
        guard let decoded = try? world.verifier.decoded(text, as: kind, now: World.now) else { continue }
        precondition((try? JSONValue.read(decoded))?.object != nil, "a decoded \(kind) is no JSON object")
    }
    return 0
}

/// Both kinds of bodies that ingest accepts.
let body: Target = { bytes, count in
    let body = input(bytes, count)
    if let text = try? NotificationBody.signedPayload(of: body) {
        precondition((try? JSONValue.read(body))?["signedPayload"]?.string.map { Array($0.utf8) } == text)
    }
    if let value = try? JSONValue.read(body), let record = try? UsageRecord(value) {
        precondition(!record.originalTransactionId.isEmpty && (try? JSONValue.read(record.value))?.object != nil)
    }
    return 0
}

/// The payload with `{"signedTransactionInfo":{...}}` replaced by `{"signedTransactionInfo":"eyJ..."}`, and the other members
/// likewise: random input never contains a valid signature.
private func withPartsSigned(_ payload: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var rest = payload[...]
    while let name = nextName(in: rest) {
        result += rest[..<name.upperBound]
        rest = rest[name.upperBound...]
        guard let object = leadingObject(of: rest) else { continue }
        result += [UInt8(ascii: "\"")] + World.shared.signed(Array(object)) + [UInt8(ascii: "\"")]
        rest = rest[object.endIndex...]
    }
    return result + rest
}

private let signedMembers = ["signedTransactionInfo", "signedRenewalInfo", "signedAppTransactionInfo"]
    .map { Array("\"\($0)\":".utf8) }

private func nextName(in bytes: ArraySlice<UInt8>) -> Range<Int>? {
    for start in bytes.indices where bytes[start] == UInt8(ascii: "\"") {
        for name in signedMembers where bytes[start...].starts(with: name) { return start..<start + name.count }
    }
    return nil
}

/// From the first byte, a brace, to the matching one. Braces within strings do not count.
private func leadingObject(of bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    guard bytes.first == UInt8(ascii: "{") else { return nil }
    var depth = 0
    var isInString = false
    var isEscaped = false
    for index in bytes.indices {
        switch bytes[index] {
        case _ where isEscaped: isEscaped = false
        case UInt8(ascii: "\\") where isInString: isEscaped = true
        case UInt8(ascii: "\""): isInString.toggle()
        case UInt8(ascii: "{") where !isInString: depth += 1
        case UInt8(ascii: "}") where !isInString:
            depth -= 1
            if depth == 0 { return bytes[bytes.startIndex...index] }
        default: break
        }
    }
    return nil
}
