// The version of libcurl.

internal import CCurl

/// The libcurl in use.
public enum Libcurl {
    /// The version that the library reports at run time.
    public static var version: String {
        perennial_curl_version().map { String(cString: $0) } ?? "unknown"
    }

    /// The version of the headers that this program was built with.
    public static var headerVersion: String { LIBCURL_VERSION }
}
