// Parsers of what Apple, or somebody else, posts.

import AppStore
import JSON
import Records

/// No text but the one that was signed is taken.
let jws: Target = { bytes, count in
    let text = input(bytes, count)
    let world = World.shared
    if (try? world.verifier.notification(text, now: World.now)) != nil {
        precondition(text == world.genuine, "a forged notification was taken")
    }
    for kind in PayloadKind.allCases where (try? world.verifier.decoded(text, as: kind, now: World.now)) != nil {
        precondition(text == world.genuine, "a forged \(kind) was taken")
    }
    return 0
}

/// Whatever a signed payload says, what is taken of it makes one JSON object without repeated names.
let payload: Target = { bytes, count in
    let world = World.shared
    let text = world.signed(input(bytes, count))
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

/// Both bodies that ingest takes.
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
