// Which libraries the server is made of.

import CMicroHTTPD

/// The libmicrohttpd in use.
public enum Libmicrohttpd {
    /// As the library itself says at run time.
    public static var version: String { MHD_get_version().map { String(cString: $0) } ?? "unknown" }

    /// The version whose headers this program was built with: two decimal digits a number, written as hexadecimal ones.
    public static var headerVersion: String {
        let number = UInt32(MHD_VERSION)
        return [24, 16, 8].map { String(number >> $0 & 0xFF, radix: 16) }.joined(separator: ".")
    }
}

/// The GnuTLS in use.
public enum GnuTLS {
    /// As the library itself says at run time.
    public static var version: String { gnutls_check_version(nil).map { String(cString: $0) } ?? "unknown" }

    /// The version whose headers this program was built with.
    public static var headerVersion: String { GNUTLS_VERSION }
}
