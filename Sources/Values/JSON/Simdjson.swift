// The version of simdjson.

internal import CSIMDJSON

/// The simdjson whose headers this program was built with; the library does not report its own version.
public enum Simdjson {
    public static var headerVersion: String { String(cString: perennial_json_simdjson_version()) }
}
