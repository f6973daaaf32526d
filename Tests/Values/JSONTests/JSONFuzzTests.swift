import Foundation
import Testing

@testable import JSON

/// SplitMix64: a few lines, and the same numbers everywhere.
private struct Seeded: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

private let validDocuments = [
    #"{"name":"rdkafka#consumer-1","ts":5016483227792,"time":1527060869,"brokers":{"localhost:9092/2":{"rtt":{"p50":-1}}}}"#,
    #"[{"bundleId":"com.example.app","appAppleId":123,"entitlements":{"premium":["pro.monthly"]},"periods":{"p":"P30D"}}]"#,
    #"  [ 1 , -0.5e+10 , "a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00" , true , false , null , {} , [ ] , "é😀" ]  "#,
    #"[[[[[{"a":{"b":[{"c":[]}]}}]]]]]"#,
    "\"text\"", "12345", "true",
]

/// Bytes that often give almost valid JSON.
private let telling = Array("{}[]\",:\\u0019-+.eE tfn\n\t/x".utf8) + [0x00, 0x1f, 0x80, 0xc3, 0xff]

private func mutated(_ document: [UInt8], with random: inout Seeded) -> [UInt8] {
    var bytes = document
    for _ in 0..<Int.random(in: 1...3, using: &random) {
        let at = Int.random(in: 0...bytes.count, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0 where at < bytes.count: bytes[at] = telling.randomElement(using: &random)!
        case 1 where at < bytes.count: bytes.remove(at: at)
        case 2: bytes.insert(telling.randomElement(using: &random)!, at: at)
        case 3: bytes.removeSubrange(at...)
        default:
            let from = Int.random(in: 0...at, using: &random)
            bytes.insert(contentsOf: bytes[from..<at], at: at)
        }
    }
    return bytes
}

private enum Verdict: Equatable { case accepted, refused }

private func oracle(_ bytes: [UInt8]) -> Verdict {
    (try? JSONSerialization.jsonObject(with: Data(bytes), options: [.fragmentsAllowed])) == nil ? .refused : .accepted
}

/// Where the two may differ, and which one is right:
/// - numbers beyond a double: JSON has no limit and we keep the text; Foundation refuses or rounds them;
/// - UTF-16 and UTF-32 (a NUL among the first four bytes): Foundation guesses the encoding; RFC 8259 8.1 asks for UTF-8;
/// - a byte order mark: Foundation skips it; RFC 8259 8.1 lets a reader refuse it;
/// - a comma before a closing bracket: Foundation takes it, RFC 8259 does not have it;
/// - nesting: Foundation allows 512 levels, ours 64 (inputs here stay below).
private func mayDiffer(_ bytes: [UInt8]) -> Bool {
    if bytes.prefix(4).contains(0) || bytes.starts(with: [0xef, 0xbb, 0xbf]) || bytes.starts(with: [0xff, 0xfe]) {
        return true
    }
    // An exponent or a run of digits long enough to leave the range of a double or of Foundation's integers.
    let text = String(decoding: bytes, as: UTF8.self)
    return text.contains(/,\s*[\]}]/) || text.contains(/[eE][+-]?[0-9]{3,}/) || text.contains(/[0-9]{18,}/)
}

/// Whether an object at any level has two members of one name.
private func repeatsName(_ value: JSONValue) -> Bool {
    switch value {
    case .array(let elements): elements.contains(where: repeatsName)
    case .object(let object):
        Set(object.members.map { Array($0.name.utf8) }).count < object.members.count
            || object.members.contains { repeatsName($0.value) }
    default: false
    }
}

@Suite struct `The JSON reader under mutation` {
    @Test(arguments: UInt64(1)...8)
    func `accepts and refuses what Foundation does`(_ seed: UInt64) throws {
        var random = Seeded(state: seed)
        var limits = JSONLimits()
        limits.refusesRepeatedNames = false
        var reader = JSONReader(limits: limits)
        var accepted = 0
        for round in 0..<1500 {
            let bytes = mutated(Array(validDocuments.randomElement(using: &random)!.utf8), with: &random)
            let value = try? reader.read(bytes)
            let verdict: Verdict = value == nil ? .refused : .accepted
            if verdict == .accepted { accepted += 1 }
            guard verdict != oracle(bytes), !mayDiffer(bytes) else { continue }
            Issue.record(
                "seed \(seed) round \(round): we \(verdict) \(String(decoding: bytes, as: UTF8.self).debugDescription)")
        }
        #expect(accepted > 100, "the mutations leave enough valid documents to judge by")
    }

    @Test(arguments: UInt64(1)...4)
    func `what it accepts is written and read back the same`(_ seed: UInt64) throws {
        var random = Seeded(state: seed)
        for _ in 0..<1000 {
            let bytes = mutated(Array(validDocuments.randomElement(using: &random)!.utf8), with: &random)
            guard let value = try? JSONValue.read(bytes) else { continue }
            var writer = JSONWriter()
            writer.value(value)
            #expect(try JSONValue.read(writer.bytes) == value)
        }
    }

    @Test(arguments: UInt64(1)...4)
    func `what is read flat is the same, its parts too`(_ seed: UInt64) throws {
        var random = Seeded(state: seed)
        var document = JSONDocument()
        for _ in 0..<1000 {
            let bytes = mutated(Array(validDocuments.randomElement(using: &random)!.utf8), with: &random)
            let tree = try? JSONValue.read(bytes)
            do throws(JSONFault) {
                try document.read(bytes.span)
                let flat = document.tree(document.root)
                #expect(flat == tree)
                let raw = document.raw(document.root).withUnsafeBufferPointer { Array($0) }
                #expect(try JSONValue.read(raw) == tree)
                guard let first = document.firstElement(of: document.root) else { continue }
                let part = document.raw(first).withUnsafeBufferPointer { Array($0) }
                #expect(try JSONValue.read(part) == tree?.array?.first)
            } catch {
                #expect(tree == nil)
            }
        }
    }

    @Test(arguments: UInt64(1)...4)
    func `it refuses a name given twice, and nothing else for that`(_ seed: UInt64) throws {
        var random = Seeded(state: seed)
        var limits = JSONLimits()
        limits.refusesRepeatedNames = false
        var repeating = 0
        for _ in 0..<1000 {
            // Small objects of few names, some inside others.
            var text = "1"
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let names = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                    ["a", "b", "", #"\u0061"#, "ab", "aab"].randomElement(using: &random)!
                }
                text =
                    "{"
                    + names.map { "\"\($0)\": \(Bool.random(using: &random) ? text : "[\(text)]")" }
                    .joined(separator: ",") + "}"
            }
            let bytes = Array(text.utf8)
            let repeats = repeatsName(try JSONValue.read(bytes, limits: limits))
            if repeats { repeating += 1 }
            do throws(JSONFault) {
                _ = try JSONValue.read(bytes)
                #expect(!repeats, "\(text)")
            } catch {
                #expect(repeats && error.cause == .repeatedName, "\(text)")
            }
        }
        #expect((200...800).contains(repeating), "both happen often enough to judge by")
    }
}
