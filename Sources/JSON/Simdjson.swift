// Which simdjson this is.

internal import CSIMDJSON

/// The simdjson whose headers this program was built with; the library does not tell its own version.
public enum Simdjson {
    public static var headerVersion: String { String(cString: perennial_json_simdjson_version()) }
}
