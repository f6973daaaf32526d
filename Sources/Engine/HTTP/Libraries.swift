// Versions of the libraries that the server uses.

import CMicroHTTPD

/// The libmicrohttpd in use.
public enum Libmicrohttpd {
    /// The version that the library reports at run time.
    public static var version: String { MHD_get_version().map { String(cString: $0) } ?? "unknown" }

    /// The version of the headers that this program was built with. The number has two decimal digits for each part,
    /// written as hexadecimal digits.
    public static var headerVersion: String {
        let number = UInt32(MHD_VERSION)
        return [24, 16, 8].map { String(number >> $0 & 0xFF, radix: 16) }.joined(separator: ".")
    }
}

/// The GnuTLS in use.
public enum GnuTLS {
    /// The version that the library reports at run time.
    public static var version: String { gnutls_check_version(nil).map { String(cString: $0) } ?? "unknown" }

    /// The version of the headers that this program was built with.
    public static var headerVersion: String { GNUTLS_VERSION }
}
