// Reads certificates from files.

extension Certificate {
    /// Reads all certificates of a PEM file, or the one of a DER file. Other text is allowed only around PEM blocks.
    public static func read(_ file: [UInt8]) throws(CertificateFault) -> [Certificate] {
        guard !file.isEmpty else { throw CertificateFault("the file is empty: PEM or DER is expected") }
        // 0x30 begins a sequence. In PEM it is the digit "0", and no PEM text continues like DER.
        if file.first == 0x30, StrictDER.isWellFormed(file.span) { return [try Certificate(der: file)] }
        var certificates: [Certificate] = []
        var block: [UInt8]?
        for (index, line) in lines(of: file).enumerated() {
            switch (marker(line), block) {
            case (.begin("CERTIFICATE"), nil): block = []
            case (.begin(let label), nil):
                throw CertificateFault(
                    "line \(index + 1) begins a block of another kind (\(label)): use a file with only certificates")
            case (.begin, _): throw CertificateFault("line \(index + 1) begins a block within a block")
            case (.end("CERTIFICATE"), let text?):
                certificates.append(try certificate(number: certificates.count + 1, base64: text))
                block = nil
            case (.end, _): throw CertificateFault("line \(index + 1) ends a block that has not begun")
            case (nil, let text?): block = text + line
            case (nil, nil): break
            }
        }
        guard block == nil else { throw CertificateFault("the last block has no end: the file is incomplete") }
        guard !certificates.isEmpty else {
            throw CertificateFault("no certificate in the file: PEM (BEGIN CERTIFICATE) or DER is expected")
        }
        return certificates
    }

    /// In the form that OpenSSL writes.
    public var pem: [UInt8] {
        let der = der
        let text = Base64.encodeStandard(der.span)
        var pem = Array("-----BEGIN CERTIFICATE-----\n".utf8)
        for start in stride(from: 0, to: text.count, by: 64) {
            pem += text[start..<min(start + 64, text.count)]
            pem.append(0x0a)
        }
        return pem + Array("-----END CERTIFICATE-----\n".utf8)
    }

    private static func certificate(number: Int, base64: [UInt8]) throws(CertificateFault) -> Certificate {
        guard let der = Base64.decodeStandard(base64.span) else {
            throw CertificateFault("certificate \(number): not valid base64")
        }
        do throws(CertificateFault) {
            return try Certificate(der: der)
        } catch {
            throw CertificateFault("certificate \(number): \(error)")
        }
    }

    /// Without blanks and carriage returns at the ends.
    private static func lines(of file: [UInt8]) -> [[UInt8]] {
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0d]
        return file.split(separator: 0x0a, omittingEmptySubsequences: false).map { line in
            let start = line.drop { blanks.contains($0) }
            return Array(start.prefix(start.lastIndex { !blanks.contains($0) }.map { $0 - start.startIndex + 1 } ?? 0))
        }
    }

    private enum Marker { case begin(String), end(String) }

    private static func marker(_ line: [UInt8]) -> Marker? {
        guard line.starts(with: "-----".utf8), line.count > 10, line.suffix(5).elementsEqual("-----".utf8) else {
            return nil
        }
        let words = String(decoding: line.dropFirst(5).dropLast(5), as: UTF8.self)
        if words.hasPrefix("BEGIN ") { return .begin(String(words.dropFirst(6))) }
        if words.hasPrefix("END ") { return .end(String(words.dropFirst(4))) }
        return nil
    }
}
