// Which libcurl this is.

internal import CCurl

/// The libcurl in use.
public enum Libcurl {
    /// As the library itself says at run time.
    public static var version: String {
        perennial_curl_version().map { String(cString: $0) } ?? "unknown"
    }

    /// The version whose headers this program was built with.
    public static var headerVersion: String { LIBCURL_VERSION }
}
