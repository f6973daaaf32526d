// Versions of librdkafka.

internal import CRDKafka

/// The librdkafka in use.
public enum Librdkafka {
    /// As the library itself reports at run time.
    public static var version: String { String(cString: rd_kafka_version_str()) }

    /// The version whose headers this program was built with.
    public static var headerVersion: String {
        let number = UInt32(RD_KAFKA_VERSION)
        return "\(number >> 24).\(number >> 16 & 0xff).\(number >> 8 & 0xff)"
    }
}
