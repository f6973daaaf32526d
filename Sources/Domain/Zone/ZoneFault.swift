// Why a time zone cannot be used, and what to do about it.

public enum ZoneFault: Error, Sendable, Equatable, CustomStringConvertible {
    case notAName(String)
    /// The reason contains the path of the file.
    case unreadable(name: String, reason: String, nearest: String?)
    /// The zone exists, but this machine has no file of it.
    case notInstalled(name: String, reason: String)
    case unusable(name: String, TZifFault)

    public var description: String {
        switch self {
        case .notAName(let text):
            // Escaped and shortened: the setting may contain anything.
            "\(String(text.unicodeScalars.prefix(80)).debugDescription) is not the name of a time zone; "
                + "use a name such as Europe/Berlin, or UTC"
        case .unreadable(let name, let reason, .some(let nearest)):
            "no time zone is called \(name.debugDescription): \(reason); did you mean \(nearest)?"
        case .unreadable(let name, let reason, nil):
            "no time zone is called \(name.debugDescription): \(reason); use a name such as Europe/Berlin, "
                + "and install the package tzdata if it is missing"
        case .notInstalled(let name, let reason):
            "the data of time zone \(name.debugDescription) is missing: \(reason); install the package tzdata, or "
                + "tzdata-legacy, which has the old names from Debian 13 on"
        case .unusable(let name, .countsLeapSeconds):
            "the data of time zone \(name.debugDescription) cannot be used: \(TZifFault.countsLeapSeconds); "
                + "use the zone of the same name without right/"
        case .unusable(let name, let fault):
            "the data of time zone \(name.debugDescription) cannot be used: \(fault); reinstall the package tzdata"
        }
    }
}

/// What is wrong with the bytes of a TZif file.
public enum TZifFault: Error, Sendable, Equatable, CustomStringConvertible {
    case notTZif
    case unknownVersion(UInt8)
    case truncated
    /// The header, or the two headers, contradict each other.
    case inconsistentHeader
    case countsLeapSeconds
    case transitionsOutOfOrder
    case unknownType(Int)
    case offsetOutOfRange(seconds: Int64)
    case badType(Int)
    case badFooter(String)

    public var description: String {
        switch self {
        case .notTZif: "it is not a TZif file"
        case .unknownVersion(let byte): "its version is the byte \(byte), but only the versions 1 to 4 are supported"
        case .truncated: "it is truncated, or its header announces more data than the file contains"
        case .inconsistentHeader: "its headers contradict each other"
        case .countsLeapSeconds: "its instants count leap seconds"
        case .transitionsOutOfOrder: "its transitions are not sorted by time"
        case .unknownType(let index): "a transition uses the local time type \(index), which does not exist"
        case .offsetOutOfRange(let seconds): "a local time type is \(seconds) seconds from UTC, more than a day"
        case .badType(let index): "the local time type \(index) is not well-formed"
        case .badFooter(let text):
            "the rule in its footer, \(String(text.unicodeScalars.prefix(80)).debugDescription), is not supported"
        }
    }
}
