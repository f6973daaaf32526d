// The calendar days of a time zone, computed from the data in its file.

public import Contract

/// The days of one time zone, with one version of the time zone data.
///
/// Laws change and the data with them, so a later version may assign an instant to another day. Everything that depends
/// on days depends on `fingerprint`.
public struct Zone: Sendable {
    /// The IANA name.
    public let name: String
    /// The version of the data, such as "2025b".
    public let dataVersion: String
    let offsets: OffsetTable

    /// Needs no file.
    public static let utc = Zone(
        name: "UTC", dataVersion: "UTC", offsets: OffsetTable(before: 0, changes: [], rule: nil))

    /// Reads the bytes of a TZif file (RFC 8536), versions 1 to 4.
    public init(name: String, file: [UInt8], dataVersion: String) throws(ZoneFault) {
        guard Self.isName(name) else { throw .notAName(name) }
        do throws(TZifFault) {
            let content = try TZif(file)
            let table = OffsetTable(before: content.before, changes: content.changes, rule: content.rule)
            self.init(name: name, dataVersion: dataVersion, offsets: table)
        } catch {
            throw .unusable(name: name, error)
        }
    }

    private init(name: String, dataVersion: String, offsets: OffsetTable) {
        self.name = name
        self.dataVersion = dataVersion
        self.offsets = offsets
    }

    /// Whether a text may be a zone name. It becomes part of a path, so no other text may reach the file system.
    public static func isName(_ text: String) -> Bool {
        // `localtime` is the setting of the machine: with it, two workers could count different days.
        guard (1...64).contains(text.utf8.count), text != "localtime" else { return false }
        return text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).allSatisfy {
            !$0.isEmpty && $0.allSatisfy(isNameByte)
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "+"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// The version of data that does not contain its version: a hash of the bytes. It does not protect against forgery.
    public static func version(of file: [UInt8]) -> String {
        // FNV-1a of 64 bits.
        let hash = file.reduce(into: 0xcbf2_9ce4_8422_2325 as UInt64) { hash, byte in
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
        }
        let digits = String(hash, radix: 16)
        return "unknown-" + String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// Two zones with one fingerprint have the same days.
    public var fingerprint: String { "\(name)@\(dataVersion)" }

    /// The day that local calendars show. Here and below, instants are milliseconds since 1970; an instant outside the
    /// UTC years 1 to 9999 is replaced by the nearest one inside. O(log n) of some hundred changes.
    public func day(of instant: Int64) -> CivilDay { CivilDay(number: Int64(dayNumber(of: instant))) }

    /// The number of `day(of:)`, for callers who only compare or count.
    public func dayNumber(of instant: Int64) -> Int32 {
        let instant = min(max(instant, Self.earliest), Self.latest)
        return Self.dayNumber(ofLocal: instant + offsets.milliseconds(at: instant))
    }

    /// - Parameter time: what local clocks show, in milliseconds since 1970 as they count it.
    static func dayNumber(ofLocal time: Int64) -> Int32 {
        let number = time.floorDivided(by: millisecondsPerDay)
        return Int32(min(max(number, CivilDay.first.number), CivilDay.last.number))
    }

    /// The first instant of the day. If clocks skip midnight it is their first time after midnight; if the whole day
    /// was skipped it is the start of the next day.
    public func start(of day: CivilDay) -> Int64 {
        let number = min(max(day.number, CivilDay.first.number), CivilDay.last.number)
        return offsets.firstInstant(reading: number * millisecondsPerDay)
    }

    static let earliest = CivilDay.first.number * millisecondsPerDay
    static let latest = (CivilDay.last.number + 1) * millisecondsPerDay - 1
}

/// The length of a UTC day; a day of a zone may be an hour shorter or longer.
let millisecondsPerDay: Int64 = 86_400_000
let secondsPerDay: Int64 = 86_400
