import Contract
import Crypto
import Foundation
import JSON

@testable import Simulation

/// A signed text, or something like one, and its name in a list of differences.
struct Sample: Sendable {
    let name: String
    let text: String
}

/// Genuine payloads, forgeries, and systematic changes of them. They are the same in every run.
struct SampleMaker {
    let authority: SimulatedAuthority
    private let forger: Forger
    private let notifications: [SimulatedNotification]

    static let apps = [
        SimulatedApp(bundleId: "com.example.orbit", appAppleId: 6_400_000_001),
        SimulatedApp(bundleId: "com.example.tide", appAppleId: 6_400_000_002),
    ]

    init() throws {
        authority = try SimulatedAuthority(seed: 11)
        forger = try Forger(authority, seed: 11)
        let start: Int64 = 1_735_689_600_000
        var configuration = Simulation.Configuration(
            seed: 11, subscribers: 80, apps: Self.apps, start: start, end: start + 400 * 86_400_000)
        configuration.sandboxPerMille = 300
        // Every story equally often, because rare stories have rare forms.
        configuration.weights = configuration.weights.mapValues { _ in 1 }
        notifications = Array(try Simulation(configuration).notifications.prefix(2000))
    }

    var all: [Sample] { genuine + forgeries + changedTexts + headers + payloads }

    /// Up to four of each type and subtype.
    var genuine: [Sample] {
        var seen: [String: Int] = [:]
        return notifications.compactMap { notification in
            let kind = [notification.notificationType, notification.subtype].compactMap { $0 }.joined(separator: "/")
            let number = seen[kind, default: 0]
            guard number < 4 else { return nil }
            seen[kind] = number + 1
            return Sample(name: "genuine \(kind) \(number)", text: signed(notification.payload(signedBy: authority)))
        }
    }

    var forgeries: [Sample] {
        Forgery.allCases.flatMap { forgery in
            notifications.filter(forgery.applies).enumerated().filter { $0.offset % 41 == 0 }.prefix(6).map {
                Sample(
                    name: "forgery \(forgery.rawValue) \($0.offset)",
                    text: String(decoding: forger.forge(forgery, of: $0.element), as: UTF8.self))
            }
        }
    }

    // MARK: Texts

    /// A notification with transaction and renewal info, of production.
    private var model: SimulatedNotification {
        notifications.first { $0.renewalInfo != nil && $0.environment == .production && $0.status == 1 }!
    }
    private var modelPayload: String { String(decoding: model.payload(signedBy: authority), as: UTF8.self) }

    var changedTexts: [Sample] {
        let text = signed(Array(modelPayload.utf8))
        let parts = text.split(separator: ".").map(String.init)
        var samples: [Sample] = []
        for (name, index) in [("header", 0), ("payload", 1), ("signature", 2)] {
            let part = Array(parts[index].utf8)
            func add(_ change: String, _ changed: [UInt8]) {
                var all = parts
                all[index] = String(decoding: changed, as: UTF8.self)
                samples.append(Sample(name: "text \(name) \(change)", text: all.joined(separator: ".")))
            }
            // A prime number of places, so that they are not all at the end of a group of four.
            for place in stride(from: 1, to: part.count - 2, by: max(1, part.count / 37)) {
                var changed = part
                changed[place] = changed[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
                add("other character at \(place)", changed)
            }
            for count in 1...4 { add("short of \(count)", Array(part.dropLast(count))) }
            add("empty", [])
            add("twice", part + part)
            for extra in ["=", "==", "A", " ", "\n", "\r\n", "+", "/", "-", "_", "%3D", "\u{0}", "é"] {
                add("and \(extra.debugDescription) after it", part + Array(extra.utf8))
                add("and \(extra.debugDescription) inside", part.prefix(8) + Array(extra.utf8) + part.dropFirst(8))
            }
        }
        samples += [
            Sample(name: "text nothing", text: ""), Sample(name: "text dots", text: ".."),
            Sample(name: "text of two parts", text: parts[0] + "." + parts[1]),
            Sample(name: "text of four parts", text: text + "." + parts[2]),
            Sample(name: "text with a line end", text: text + "\n"),
            Sample(name: "text behind a blank", text: " " + text),
            Sample(name: "text loose trailing bits", text: looseEnd(text)),
        ]
        return samples
    }

    /// Four bits of the signature's last character mean nothing. In the canonical form they are 0.
    private func looseEnd(_ text: String) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let value = alphabet.firstIndex(of: text.last!)!
        return text.dropLast() + String(alphabet[value | 1])
    }

    // MARK: Headers

    var headers: [Sample] {
        let x5c = [authority.leaf, authority.intermediate, authority.root].map { Data($0.der).base64EncodedString() }
        func list(_ certificates: [String]) -> String {
            "[" + certificates.map { "\"\($0)\"" }.joined(separator: ",") + "]"
        }
        func wrapped(_ text: String) -> String { text.prefix(64) + "\\n" + text.dropFirst(64) }
        let chain = list(x5c)
        let variants: [(String, String)] = [
            ("as it should be", #"{"alg":"ES256","x5c":\#(chain)}"#),
            ("typ", #"{"alg":"ES256","typ":"JWT","x5c":\#(chain)}"#),
            (
                "kid, jku, jwk",
                #"{"alg":"ES256","kid":"a","jku":"https://a.example","jwk":{"kty":"EC"},"x5c":\#(chain)}"#
            ),
            ("unknown member", #"{"alg":"ES256","x5c":\#(chain),"new":{"a":[1]}}"#),
            ("blanks", "{ \"alg\" : \"ES256\" ,\n\t\"x5c\" : \(chain) }"),
            ("alg in small letters", #"{"alg":"es256","x5c":\#(chain)}"#),
            ("alg HS256", #"{"alg":"HS256","x5c":\#(chain)}"#), ("alg none", #"{"alg":"none","x5c":\#(chain)}"#),
            ("alg null", #"{"alg":null,"x5c":\#(chain)}"#), ("alg a number", #"{"alg":256,"x5c":\#(chain)}"#),
            ("alg a list", #"{"alg":["ES256"],"x5c":\#(chain)}"#), ("no alg", #"{"x5c":\#(chain)}"#),
            ("alg twice", #"{"alg":"ES256","alg":"ES256","x5c":\#(chain)}"#),
            ("alg none, then ES256", #"{"alg":"none","alg":"ES256","x5c":\#(chain)}"#),
            ("crit", #"{"alg":"ES256","crit":["exp"],"exp":1,"x5c":\#(chain)}"#),
            ("crit b64", #"{"alg":"ES256","crit":["b64"],"b64":true,"x5c":\#(chain)}"#),
            ("crit empty", #"{"alg":"ES256","crit":[],"x5c":\#(chain)}"#),
            ("b64 true", #"{"alg":"ES256","b64":true,"x5c":\#(chain)}"#),
            ("b64 false", #"{"alg":"ES256","b64":false,"x5c":\#(chain)}"#),
            ("no x5c", #"{"alg":"ES256"}"#), ("x5c null", #"{"alg":"ES256","x5c":null}"#),
            ("x5c a text", #"{"alg":"ES256","x5c":"\#(x5c[0])"}"#), ("x5c empty", #"{"alg":"ES256","x5c":[]}"#),
            ("x5c of one", #"{"alg":"ES256","x5c":\#(list(Array(x5c.prefix(1))))}"#),
            ("x5c of two", #"{"alg":"ES256","x5c":\#(list(Array(x5c.prefix(2))))}"#),
            ("x5c of four", #"{"alg":"ES256","x5c":\#(list(x5c + [x5c[2]]))}"#),
            ("x5c with a number", #"{"alg":"ES256","x5c":["\#(x5c[0])",1,"\#(x5c[2])"]}"#),
            ("x5c backwards", #"{"alg":"ES256","x5c":\#(list(x5c.reversed()))}"#),
            ("x5c the leaf three times", #"{"alg":"ES256","x5c":\#(list([x5c[0], x5c[0], x5c[0]]))}"#),
            ("root nonsense", #"{"alg":"ES256","x5c":\#(list([x5c[0], x5c[1], "AAAA"]))}"#),
            ("root no base64", #"{"alg":"ES256","x5c":\#(list([x5c[0], x5c[1], "&"]))}"#),
            ("root empty", #"{"alg":"ES256","x5c":\#(list([x5c[0], x5c[1], ""]))}"#),
            ("root the intermediate", #"{"alg":"ES256","x5c":\#(list([x5c[0], x5c[1], x5c[1]]))}"#),
            ("leaf with a line break", #"{"alg":"ES256","x5c":\#(list([wrapped(x5c[0]), x5c[1], x5c[2]]))}"#),
            ("leaf in base64url", #"{"alg":"ES256","x5c":\#(list([urlForm(x5c[0]), x5c[1], x5c[2]]))}"#),
            ("leaf without padding", #"{"alg":"ES256","x5c":\#(list([unpadded(authority.leaf), x5c[1], x5c[2]]))}"#),
            ("leaf with a byte more", #"{"alg":"ES256","x5c":\#(list([longer(authority.leaf), x5c[1], x5c[2]]))}"#),
            (
                "intermediate with a byte more",
                #"{"alg":"ES256","x5c":\#(list([x5c[0], longer(authority.intermediate), x5c[2]]))}"#
            ),
            ("no object", chain), ("nothing", ""), ("no JSON", "{"),
            ("byte order mark", "\u{FEFF}" + #"{"alg":"ES256","x5c":\#(chain)}"#),
        ]
        return variants.map { Sample(name: "header \($0)", text: signed(Array(modelPayload.utf8), header: $1)) }
    }

    private func urlForm(_ text: String) -> String { text.replacing("+", with: "-").replacing("/", with: "_") }
    private func longer(_ certificate: Certificate) -> String { Data(certificate.der + [0]).base64EncodedString() }
    /// A text that needs padding, whatever its length.
    private func unpadded(_ certificate: Certificate) -> String {
        Data(certificate.der).base64EncodedString().replacing("=", with: "")
    }

    // MARK: Payloads

    var payloads: [Sample] {
        let payload = modelPayload
        let at = #""signedDate":\#(model.at)"#
        let future = WallTime.future
        let (app, id) = (#""bundleId":"\#(model.bundleId)""#, #""appAppleId":\#(appAppleId)"#)
        let other = notifications.first {
            $0.renewalInfo != nil && $0.environment == .production
                && $0.originalTransactionId != model.originalTransactionId
        }!
        /// Replaces it once; it must be there.
        func with(_ old: String, _ new: String) -> String {
            precondition(payload.contains(old), old)
            return payload.replacing(old, with: new, maxReplacements: 1)
        }
        let variants: [(String, String)] = [
            ("unknown member", with("{", #"{"new":{"a":[1,null]},"#)),
            ("null subtype", with("{", #"{"rescinded":null,"#)),
            ("unknown type", with(model.notificationType, "SOMETHING_NEW")),
            ("unknown status", with(#""status":1"#, #""status":77"#)),
            ("no status", with(#","status":1"#, "")),
            ("status a text", with(#""status":1"#, #""status":"1""#)),
            ("status with a fraction", with(#""status":1"#, #""status":1.5"#)),
            ("version a number", with(#""version":"2.0""#, #""version":2"#)),
            ("no version", with(#""version":"2.0","#, "")),
            ("type a number", with(#""notificationType":"\#(model.notificationType)""#, #""notificationType":1"#)),
            ("no type", with(#""notificationType":"\#(model.notificationType)","#, "")),
            ("no UUID", with(#""notificationUUID":"\#(model.notificationUUID)","#, "")),
            ("no date", with("," + at, "")), ("date null", with(at, #""signedDate":null"#)),
            ("date a text", with(at, #""signedDate":"\#(model.at)""#)),
            ("date with a fraction", with(at, #""signedDate":\#(model.at).5"#)),
            ("date with an exponent", with(at, #""signedDate":1.8e12"#)),
            ("date beyond 64 bits", with(at, #""signedDate":99999999999999999999"#)),
            ("date negative", with(at, #""signedDate":-1"#)),
            ("date before the certificates", with(at, #""signedDate":1000000000000"#)),
            ("date in an hour", with(at, #""signedDate":\#(future)"#)),
            ("exp in the past", with("{", #"{"exp":1,"#)), ("nbf in the future", with("{", #"{"nbf":4000000000,"#)),
            ("aud", with("{", #"{"aud":"you","#)), ("iat in the future", with("{", #"{"iat":4000000000,"#)),
            ("repeated member", with("{", #"{"version":"2.0","#)),
            ("repeated member inside", with(#""data":{"#, #""data":{"status":1,"#)),
            ("lone surrogate", with("{", #"{"new":"\ud800","#)),
            ("control character", with("{", "{\"new\":\"\u{1}\",")),
            ("depth 17", with("{", #"{"new":\#(nested(16)),"#)), ("depth 16", with("{", #"{"new":\#(nested(15)),"#)),
            ("NaN", with("{", #"{"new":NaN,"#)), ("trailing comma", with(#""signedDate":\#(model.at)}"#, at + ",}")),
            ("text after it", payload + "x"), ("blanks after it", payload + " \n"), ("a list", "[\(payload)]"),
            ("nothing", ""), ("null", "null"), ("an empty object", "{}"), ("byte order mark", "\u{FEFF}" + payload),
            ("other app", with(app, #""bundleId":"com.example.other""#)), ("no app", with(app + ",", "")),
            ("app in capitals", with(app, #""bundleId":"\#(model.bundleId.uppercased())""#)),
            ("other app id", with(id, #""appAppleId":1"#)), ("no app id", with(id + ",", "")),
            ("app id a text", with(id, #""appAppleId":"\#(appAppleId)""#)),
            ("sandbox outside only", with(#""environment":"Production""#, #""environment":"Sandbox""#)),
            ("Xcode", with(#""environment":"Production""#, #""environment":"Xcode""#)),
            ("LocalTesting", with(#""environment":"Production""#, #""environment":"LocalTesting""#)),
            ("unknown environment", with(#""environment":"Production""#, #""environment":"Mars""#)),
            ("no environment", with(#""environment":"Production","#, "")),
            ("data null", #"{"notificationType":"TEST","notificationUUID":"a","data":null,"version":"2.0",\#(at)}"#),
            ("data a text", #"{"notificationType":"TEST","notificationUUID":"a","data":"b","version":"2.0",\#(at)}"#),
            ("no content", #"{"notificationType":"TEST","notificationUUID":"a","version":"2.0",\#(at)}"#),
            ("purchase of another", with(inner(model.transaction), inner(other.transaction))),
            ("renewal of another", with(inner(model.renewalInfo), inner(other.renewalInfo))),
            ("purchase in place of the renewal", with(inner(model.renewalInfo), inner(model.transaction))),
            ("renewal in place of the purchase", with(inner(model.transaction), inner(model.renewalInfo))),
            ("purchase no signed text", with(inner(model.transaction), "abc")),
            ("purchase empty", with(inner(model.transaction), "")),
            ("purchase a number", with("\"" + inner(model.transaction) + "\"", "1")),
            ("renewal null", with("\"" + inner(model.renewalInfo) + "\"", "null")),
            ("no renewal", with(#","signedRenewalInfo":"\#(inner(model.renewalInfo))""#, "")),
        ]
        let outer = variants.map { Sample(name: "payload \($0)", text: signed(Array($1.utf8))) }
        return outer + innerVariants.map { Sample(name: "inner \($0)", text: signed(Array($1.utf8))) }
    }

    /// The outer payload with another transaction or renewal info inside, signed like the genuine one.
    private var innerVariants: [(String, String)] {
        let (transaction, renewal) = [model.transaction, model.renewalInfo].map { String(decoding: $0!, as: UTF8.self) }
            .withUnsafeBufferPointer { ($0[0], $0[1]) }
        func replace(_ part: String, _ old: String, _ new: String) -> String {
            precondition(part.contains(old), old)
            let changed = part.replacing(old, with: new, maxReplacements: 1)
            return modelPayload.replacing(inner(Array(part.utf8)), with: inner(Array(changed.utf8)))
        }
        let app = #""bundleId":"\#(model.bundleId)""#
        let original = #""originalTransactionId":"\#(model.originalTransactionId!)""#
        return [
            ("purchase of another app", replace(transaction, app, #""bundleId":"com.example.other""#)),
            ("purchase of our other app", replace(transaction, app, #""bundleId":"com.example.tide""#)),
            ("purchase without app", replace(transaction, app + ",", "")),
            ("purchase in sandbox", replace(transaction, #""environment":"Production""#, #""environment":"Sandbox""#)),
            ("purchase without environment", replace(transaction, #""environment":"Production","#, "")),
            ("purchase without original", replace(transaction, original + ",", "")),
            (
                "purchase with an original that is a number",
                replace(transaction, original, #""originalTransactionId":1"#)
            ),
            ("purchase with a new member", replace(transaction, "{", #"{"new":1,"#)),
            ("purchase with quantity as text", replace(transaction, #""quantity":1"#, #""quantity":"1""#)),
            ("purchase with an unknown type", replace(transaction, "Auto-Renewable Subscription", "Something New")),
            ("renewal of another", replace(renewal, original, #""originalTransactionId":"2000000000000001""#)),
            ("renewal in sandbox", replace(renewal, #""environment":"Production""#, #""environment":"Sandbox""#)),
            ("renewal without environment", replace(renewal, #""environment":"Production""#, #""new":1"#)),
            ("renewal without status", replace(renewal, #""autoRenewStatus":1"#, #""new":1"#)),
            ("renewal with a new status", replace(renewal, #""autoRenewStatus":1"#, #""autoRenewStatus":9"#)),
        ]
    }

    private var appAppleId: Int64 { Self.apps.first { $0.bundleId == model.bundleId }!.appAppleId }
    private func inner(_ json: [UInt8]?) -> String { String(decoding: authority.sign(json!), as: UTF8.self) }
    private func nested(_ depth: Int) -> String {
        String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }

    private func signed(_ payload: [UInt8]) -> String { String(decoding: authority.sign(payload), as: UTF8.self) }
    private func signed(_ payload: [UInt8], header: String) -> String {
        String(decoding: JWS.sign(payload, header: Array(header.utf8), key: authority.leafKey), as: UTF8.self)
    }
}

private enum WallTime {
    /// An hour from now.
    static var future: Int64 { Int64(Date().timeIntervalSince1970 * 1000) + 3_600_000 }
}
