import Testing

@testable import Crypto

@Suite struct `A file of certificates` {
    private let leaf: [UInt8]
    private let root: [UInt8]

    init() throws {
        leaf = try fixture("apple/leaf.der")
        root = try fixture("apple/root.der")
    }

    private func pem(_ der: [UInt8], lineLength: Int = 64, newline: String = "\n", label: String = "CERTIFICATE")
        -> String
    {
        let base64 = text(Base64.encodeStandard(der.span))
        var lines = ["-----BEGIN \(label)-----"]
        var rest = base64[...]
        while !rest.isEmpty {
            lines.append(String(rest.prefix(lineLength)))
            rest = rest.dropFirst(lineLength)
        }
        return (lines + ["-----END \(label)-----", ""]).joined(separator: newline)
    }

    private func read(_ file: String) throws -> [[UInt8]] { try Certificate.read(Array(file.utf8)).map(\.der) }

    private func fault(_ file: String) -> String {
        do throws(CertificateFault) { _ = try Certificate.read(Array(file.utf8)) } catch { return error.description }
        return "none"
    }

    @Test func `is one in DER`() throws {
        #expect(try Certificate.read(root).map(\.der) == [root])
        #expect(throws: CertificateFault.self) { try Certificate.read(root + root) }
        #expect(throws: CertificateFault.self) { try Certificate.read(Array(root.dropLast())) }
    }

    @Test func `is any number in PEM, with text around them`() throws {
        #expect(try read(pem(root)) == [root])
        #expect(try read("Apple Root\n" + pem(root) + "\nthe leaf:\n" + pem(leaf) + "end") == [root, leaf])
        #expect(try read(pem(root, lineLength: 76, newline: "\r\n")) == [root])
        #expect(try read(pem(root, lineLength: 10_000)) == [root])
        #expect(try read("\u{feff}# with a byte order mark in a line of its own\n" + pem(root)) == [root])
    }

    @Test func `says what is wrong with it`() throws {
        let whole = pem(root)
        #expect(fault("").contains("empty"))
        #expect(fault("nothing of the kind").contains("no certificate"))
        #expect(fault(whole + pem(leaf, label: "PRIVATE KEY")).contains("another kind (PRIVATE KEY)"))
        #expect(fault(pem(root, label: "TRUSTED CERTIFICATE")).contains("TRUSTED CERTIFICATE"))
        #expect(fault(String(whole.dropLast(30))).contains("no end"))
        #expect(fault("-----BEGIN CERTIFICATE-----\n" + whole).contains("within a block"))
        #expect(fault("-----END CERTIFICATE-----\n" + whole).contains("not begun"))
        #expect(fault(whole.replacingOccurrences("MIIC", with: "M!IC")).contains("certificate 1: not valid base64"))
        #expect(fault(whole + pem([1, 2, 3])).contains("certificate 2: "))
        #expect(fault(pem(root + [0])).contains("certificate 1: "))
        #expect(fault(pem([])).contains("certificate 1: "))
    }
}

extension String {
    fileprivate func replacingOccurrences(_ old: String, with new: String) -> String { replacing(old, with: new) }
}
