import Testing

@testable import Crypto

@Suite struct `A certificate's encoding` {
    private func isRefused(_ der: [UInt8]) -> Bool {
        do throws(CertificateFault) { _ = try Certificate(der: der) } catch { return true }
        return false
    }

    @Test(arguments: ["leaf", "intermediate", "root"])
    func `has no length in BER at any of its values`(_ name: String) throws {
        let der = try fixture("apple/\(name).der")
        let tree = DERTree.read(der[...]).tree
        #expect(tree.count > 50)
        for place in 0..<tree.count {
            #expect(tree.written(.usual, at: place) == der)
            #expect(isRefused(tree.written(.longLength, at: place)))
            let indefinite = tree.written(.indefinite, at: place)
            #expect(indefinite == der || isRefused(indefinite))
        }
    }

    @Test(arguments: ["leaf", "intermediate", "root"])
    func `has no byte less and no byte more`(_ name: String) throws {
        let der = try fixture("apple/\(name).der")
        #expect(!isRefused(der))
        for count in 0..<der.count { #expect(isRefused(Array(der[..<count]))) }
        for byte in UInt8.min...UInt8.max { #expect(isRefused(der + [byte])) }
        #expect(isRefused(der + der))
    }

    @Test(arguments: [
        ("boolean of 1", "010101"), ("empty boolean", "0100"), ("integer with a zero too much", "02020001"),
        ("negative integer with a byte too much", "0202ff80"), ("empty integer", "0200"),
        ("NULL with content", "050100"),
        ("bits unused and set", "03020101"), ("nine bits unused", "03020900"), ("bits without bits", "030101"),
        ("bits without their count", "0300"), ("identifier with a padded arc", "06032a8001"),
        ("identifier without its end", "06022a86"), ("empty identifier", "0600"), ("string in pieces", "2403040100"),
        ("sequence that is primitive", "1000"), ("end of contents", "0000"), ("tag of several bytes", "1f8100"),
        ("length of 1 in two bytes", "0c810141"), ("no length", "30"), ("length without its bytes", "3082"),
        ("part beyond its whole", "30020402"), ("nothing", ""),
    ])
    func `refuses a`(_ name: String, _ hexadecimal: String) {
        let value = bytes(hexadecimal)
        #expect(!StrictDER.accepts(value))
        let within = DER.sequence(value)
        // An empty sequence is a valid value.
        #expect(value.isEmpty || !StrictDER.accepts(within))
    }

    @Test(arguments: [
        "0101ff", "010100", "020100", "0201ff", "02020080", "0202ff7f", "0500", "030100", "030200ff", "03020780",
        "06032a8648", "0c0141", "3000", "3100", "a003020102", "8000",
    ])
    func `takes`(_ hexadecimal: String) {
        let value = bytes(hexadecimal)
        #expect(StrictDER.accepts(value))
    }

    /// The reader is recursive, on the stack of a thread.
    @Test func `nests at most 24 deep`() {
        var value = DER.sequence()
        for _ in 1..<24 { value = DER.sequence(value) }
        #expect(StrictDER.accepts(value))
        let deeper = DER.sequence(value)
        #expect(!StrictDER.accepts(deeper))
        let hostile = (0..<100_000).flatMap { _ -> [UInt8] in [0x30, 0x80] }
        #expect(!StrictDER.accepts(hostile))
    }

    /// With any one byte changed, OpenSSL and the check of the form give a fault or a certificate, never a crash.
    @Test func `may have any byte changed`() throws {
        let der = try fixture("apple/root.der")
        var read = 0
        for position in der.indices {
            for bit in [0, 3, 7] {
                var changed = der
                changed[position] ^= 1 << UInt8(bit)
                guard let certificate = try? Certificate(der: changed) else { continue }
                read += 1
                #expect(certificate.der == changed)
                #expect(!certificate.serial.isEmpty)
                _ = certificate.subject
                _ = certificate.isSelfSigned
            }
        }
        #expect(read > 0)
    }
}
