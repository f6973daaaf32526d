// OCSP answers: as they arrive, and signed, so that the part behind a signature is read, too.

import Crypto

/// Only what the issuer has signed is an answer. Reading it must not crash, and it is valid for a limited time.
let ocsp: Target = { bytes, count in
    let text = input(bytes, count)
    if let answer = try? Issuer.question.answer(text, now: World.now) {
        precondition(
            answer.status == .good && answer.validUntil == World.now + 3_600_000, "a forged answer was accepted")
    }
    // Signing is slow, and only a sequence is read as the data of an answer.
    if text.first == 0x30, let answer = try? Issuer.question.answer(Issuer.signed(text), now: World.now) {
        precondition(answer.validUntil > World.now, "an expired answer was accepted")
    }
    return 0
}

enum Issuer {
    static let question = OCSPQuestion(
        about: World.shared.leaf, issuedBy: World.shared.intermediate)

    static var seeds: [(String, [UInt8])] {
        let (good, revoked, unknown) = (data([0x80, 0]), data(der(0xA1, time("20260101000000Z"))), data([0x82, 0]))
        return [
            ("genuine", signed(good)), ("good", good), ("revoked", revoked), ("unknown", unknown),
            ("refused", der(0x30, [0x0A, 1, 6])),
        ]
    }

    /// A whole response around its data.
    static func signed(_ data: [UInt8]) -> [UInt8] {
        let numbers = World.shared.intermediateKey.sign(digest: SHA256.digest(data.span).span, isDeterministic: true)
        let half = numbers.count / 2
        let signature = der(0x30, integer(numbers[..<half]) + integer(numbers[half...]))
        // ECDSA with SHA-256.
        let algorithm = der(0x30, [0x06, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 2])
        let basic = der(0x30, data + algorithm + der(0x03, [0] + signature))
        // A basic response.
        let type: [UInt8] = [0x06, 9, 0x2B, 6, 1, 5, 5, 7, 48, 1, 1]
        return der(0x30, [0x0A, 1, 0] + der(0xA0, der(0x30, type + der(0x04, basic))))
    }

    private static func data(_ status: [UInt8]) -> [UInt8] {
        let times = time("20260101000000Z") + der(0xA0, time("20260101010000Z"))
        let single = der(0x30, certificateID + status + times)
        return der(0x30, der(0xA1, subject) + time("20260101000000Z") + der(0x30, single))
    }

    /// In the request it is nested four sequences deep.
    private static var certificateID: [UInt8] {
        var rest = question.request[...]
        for _ in 0..<4 { rest = parts(of: rest)[0].content }
        return der(0x30, Array(rest))
    }

    /// The issuer's name: the sixth part of what is signed in a certificate, counting its version.
    private static var subject: [UInt8] {
        let certificate = parts(of: World.shared.intermediate.der[...])[0].content
        return Array(parts(of: parts(of: certificate)[0].content)[5].whole)
    }

    private static func time(_ text: String) -> [UInt8] { der(0x18, Array(text.utf8)) }

    private static func integer(_ number: ArraySlice<UInt8>) -> [UInt8] {
        let digits = Array(number.drop { $0 == 0 })
        return der(0x02, (digits.first ?? 0x80) >= 0x80 ? [0] + digits : digits)
    }

    private static func der(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        switch content.count {
        case ..<0x80: [tag, UInt8(content.count)] + content
        case ..<0x100: [tag, 0x81, UInt8(content.count)] + content
        default: [tag, 0x82, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
        }
    }

    /// For bytes that this program has made itself.
    private static func parts(of bytes: ArraySlice<UInt8>) -> [(whole: ArraySlice<UInt8>, content: ArraySlice<UInt8>)] {
        var parts: [(ArraySlice<UInt8>, ArraySlice<UInt8>)] = []
        var rest = bytes
        while rest.count >= 2 {
            let first = rest[rest.startIndex + 1]
            let digits = first < 0x80 ? 0 : Int(first & 0x7F)
            let start = rest.startIndex + 2 + digits
            let length = digits == 0 ? Int(first) : rest[(start - digits)..<start].reduce(0) { $0 << 8 | Int($1) }
            parts.append((rest[..<(start + length)], rest[start..<(start + length)]))
            rest = rest[(start + length)...]
        }
        return parts
    }
}
