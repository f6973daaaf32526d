// Why the days of a zone cannot be counted, and what to do about it.

public enum ZoneFault: Error, Sendable, Equatable, CustomStringConvertible {
    case notAName(String)
    /// The reason names the file.
    case unreadable(name: String, reason: String, nearest: String?)
    case unusable(name: String, TZifFault)

    public var description: String {
        switch self {
        case .notAName(let text):
            // Escaped and cut: whoever set it may have set anything.
            "\(String(text.unicodeScalars.prefix(80)).debugDescription) is not the name of a time zone; "
                + "write it like Europe/Berlin, or take UTC"
        case .unreadable(let name, let reason, .some(let nearest)):
            "no time zone is called \(name.debugDescription): \(reason); did you mean \(nearest)?"
        case .unreadable(let name, let reason, nil):
            "no time zone is called \(name.debugDescription): \(reason); write it like Europe/Berlin, "
                + "and install the package tzdata if it is missing"
        case .unusable(let name, .countsLeapSeconds):
            "the data of time zone \(name.debugDescription) cannot be used: \(TZifFault.countsLeapSeconds); "
                + "take the zone of the same name without right/"
        case .unusable(let name, let fault):
            "the data of time zone \(name.debugDescription) cannot be used: \(fault); install the package tzdata anew"
        }
    }
}

/// What is wrong with the bytes of a TZif file.
public enum TZifFault: Error, Sendable, Equatable, CustomStringConvertible {
    case notTZif
    case unknownVersion(UInt8)
    case truncated
    /// Parts of a header, or two headers, that contradict each other.
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
        case .unknownVersion(let byte): "its version is the byte \(byte), and the versions 1 to 4 are known"
        case .truncated: "it ends too early, or its header counts more than there is"
        case .inconsistentHeader: "its headers contradict themselves"
        case .countsLeapSeconds: "its instants count leap seconds"
        case .transitionsOutOfOrder: "its transitions are not in the order of time"
        case .unknownType(let index): "a transition leads to the local time type \(index), which is not there"
        case .offsetOutOfRange(let seconds): "a local time type is \(seconds) seconds from UTC, more than a day"
        case .badType(let index): "the local time type \(index) is not well-formed"
        case .badFooter(let text):
            "the rule in its footer, \(String(text.unicodeScalars.prefix(80)).debugDescription), is not understood"
        }
    }
}
