import Platform
import Testing

@Suite struct `An address` {
    @Test(arguments: ["127.0.0.1", "17.57.144.0", "::1", "2001:db8::ff00:42:8329", "::"])
    func `is written as it is read`(_ text: String) {
        #expect(IPAddress(text)?.description == text)
    }

    @Test func `of IPv4 that came mapped into IPv6 is the IPv4 address`() throws {
        let mapped = try #require(IPAddress("::ffff:17.1.2.3"))
        #expect(mapped == IPAddress("17.1.2.3"))
        #expect(mapped.bytes == [17, 1, 2, 3] && mapped.isIPv4 && mapped.description == "17.1.2.3")
        #expect(IPAddress(bytes: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 17, 1, 2, 3]) == mapped)
    }

    @Test func `of loopback is known in every notation`() {
        for text in ["127.0.0.1", "127.255.0.2", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"] {
            #expect(IPAddress(text)?.isLoopback == true, "\(text)")
        }
        for text in ["0.0.0.0", "128.0.0.1", "::", "::2", "::ffff:8.8.8.8"] {
            #expect(IPAddress(text)?.isLoopback == false, "\(text)")
        }
    }

    @Test(arguments: [
        "", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", " 1.2.3.4", "1.2.3.4/8", "[::1]", ":", "::1%lo",
        "1::2::3", "1.2.3.4\0", "::1\0x",
    ])
    func `is refused in any other form`(_ text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func `has four bytes or sixteen`() {
        for count in [0, 3, 5, 15, 17] { #expect(IPAddress(bytes: [UInt8](repeating: 1, count: count)) == nil) }
    }
}

@Suite struct `An address to listen on` {
    @Test(
        arguments: [
            ("127.0.0.1:80", "127.0.0.1", 80), ("0.0.0.0:0", "0.0.0.0", 0), ("[::1]:65535", "::1", 65535),
            ("[2001:db8::1]:8443", "2001:db8::1", 8443),
        ] as [(String, String, UInt16)])
    func `is an address and a port, written as they are read`(_ text: String, _ address: String, _ port: UInt16) throws
    {
        let listen = try #require(ListenAddress(text))
        #expect(listen.address.description == address && listen.port == port && listen.description == text)
    }

    @Test(arguments: [
        "", "9464", ":9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:+1", "127.0.0.1:-1", "127.0.0.1:65536",
        "127.0.0.1: 80", "127.0.0.1:99999999999999999999", "::1:80", "[::1]", "[]:1", "[127.0.0.1]:80", "localhost:80",
        "http://127.0.0.1:80", "a b:1",
    ])
    func `is refused in any other form`(_ text: String) {
        #expect(ListenAddress(text) == nil)
    }
}

@Suite struct `A decimal number` {
    @Test(
        arguments: [
            ("0", 0), ("007", 7), ("100", 100), ("101", nil), ("", nil), ("+1", nil), ("-1", nil), (" 1", nil),
            ("1.0", nil),
            ("٣", nil), ("99999999999999999999", nil),
        ] as [(String, Int?)])
    func `is digits only, up to its limit`(_ text: String, _ number: Int?) {
        #expect(decimal(text, upTo: 100) == number)
    }
}
