import Foundation
import Testing

@testable import Crypto

@Suite struct `Base64 text` {
    static let alphabets: [Base64.Alphabet] = [.url, .standard]
    /// Both sides of every range of the alphabets, characters of only one alphabet, padding, and characters outside ASCII.
    private static let characters: [UInt8] =
        Array("AZaz09+/-_=@[`{.:,^\r\n \0".utf8) + [0x7f, 0x80, 0xc1, 0xff]

    /// No two of them are equal, and all values of six bits are among them.
    private static func sample(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ 41 &+ count) }
    }

    /// Foundation's decoder of the standard alphabet; canonical text is what Foundation itself would write.
    private static func reference(_ text: [UInt8], _ alphabet: Base64.Alphabet) -> [UInt8]? {
        var standard = text
        if alphabet == .url {
            if text.contains(where: { "+/=".utf8.contains($0) }) { return nil }
            standard = text.map {
                $0 == UInt8(ascii: "-") ? UInt8(ascii: "+") : $0 == UInt8(ascii: "_") ? UInt8(ascii: "/") : $0
            }
            standard += [UInt8](repeating: UInt8(ascii: "="), count: (4 - text.count % 4) % 4)
        }
        guard let data = Data(base64Encoded: Data(standard)), Array(data.base64EncodedString().utf8) == standard else {
            return nil
        }
        return [UInt8](data)
    }

    @Test(arguments: alphabets)
    func `decodes to what was encoded, at every length`(_ alphabet: Base64.Alphabet) {
        for count in 0...300 {
            let bytes = Self.sample(count)
            let text = Base64.encode(bytes, alphabet)
            #expect(Base64.read(text, alphabet) == bytes)
            #expect(Base64.read(text, alphabet, withVectors: false) == bytes)
            #expect(Self.reference(text, alphabet) == bytes)
        }
    }

    /// The length of the text decides how much of it vector code decodes, so each length has its own corruptions.
    @Test(arguments: alphabets)
    func `is taken or refused the same with vectors and without`(_ alphabet: Base64.Alphabet) {
        for count in 0...300 {
            let whole = Base64.encode(Self.sample(count), alphabet)
            var text = whole
            for position in text.indices {
                // All characters at some place, without half a million checks for each length.
                for step in 0..<4 {
                    text[position] = Self.characters[(position + step * 7 + count) % Self.characters.count]
                    let fast = Base64.read(text, alphabet)
                    let slow = Base64.read(text, alphabet, withVectors: false)
                    if fast != slow { Issue.record("\(String(decoding: text, as: UTF8.self)): \(position)") }
                    if let slow, Base64.encode(slow, alphabet) != text { Issue.record("not canonical: \(text)") }
                }
                text[position] = whole[position]
            }
        }
    }

    /// Two blocks of vectors and a rest; every byte at every place of it.
    @Test(arguments: alphabets, [64, 65, 66])
    func `means what another reader says, for every byte at every place`(_ alphabet: Base64.Alphabet, _ count: Int) {
        let whole = Base64.encode(Self.sample(count), alphabet)
        var text = whole
        for position in text.indices {
            for byte in UInt8.min...UInt8.max {
                text[position] = byte
                let expected = Self.reference(text, alphabet)
                if Base64.read(text, alphabet) != expected { Issue.record("\(byte) at \(position)") }
                if Base64.read(text, alphabet, withVectors: false) != expected {
                    Issue.record("\(byte) at \(position), without vectors")
                }
            }
            text[position] = whole[position]
        }
    }

    @Test(arguments: ["A", "AAAAA", "AA==", "AAA=", "AB", "AAB", "A+AA", "A/AA", "AA AA", "AAAA\n", "=", "AAAA===="])
    func `for addresses is the only one for its value`(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(Base64.read(bytes, .url) == nil)
        #expect(Base64.read(bytes, .url, withVectors: false) == nil)
    }

    @Test(arguments: [
        "A", "AA", "AAA", "AB==", "AAB=", "AA=A", "A===", "====", "=", "AA==AA==", "A-AA", "A_AA", "AAAA\n", "AA\nAA",
        "AAAA====",
    ])
    func `in the standard alphabet is the only one for its value`(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(Base64.read(bytes, .standard) == nil)
        #expect(Base64.read(bytes, .standard, withVectors: false) == nil)
    }
}
