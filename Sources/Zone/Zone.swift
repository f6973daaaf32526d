// Which day it is somewhere: the days of a time zone, from the data that its file holds.

public import Contract

/// The days of one time zone, by one version of the time zone data.
///
/// Laws change, and the data after them, so the same instant may fall on another day by a later version: what depends on days
/// depends on `fingerprint`.
public struct Zone: Sendable {
    /// As IANA writes it.
    public let name: String
    /// Of the data, such as "2025b".
    public let dataVersion: String
    private let offsets: OffsetTable

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

    /// Whether a text may be the name of a time zone. It becomes part of a path, so nothing else is looked for on the disk.
    public static func isName(_ text: String) -> Bool {
        // What the machine is set to is no name: two workers would count different days under it.
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

    /// For data that does not tell its version: other bytes, another version. Not made to withstand forgery.
    public static func version(of file: [UInt8]) -> String {
        // FNV-1a of 64 bits.
        let hash = file.reduce(into: 0xcbf2_9ce4_8422_2325 as UInt64) { hash, byte in
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
        }
        let digits = String(hash, radix: 16)
        return "unknown-" + String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// Two zones of one fingerprint have the same days.
    public var fingerprint: String { "\(name)@\(dataVersion)" }

    /// Seconds that a clock there is ahead of UTC. Instants are milliseconds since 1970, here and below; one outside of the
    /// years 1 to 9999 of UTC is taken as the nearest in them. O(log n) of some hundred changes.
    public func offset(at instant: Int64) -> Int64 {
        offsets.milliseconds(at: min(max(instant, Self.earliest), Self.latest)) / 1000
    }

    public func day(of instant: Int64) -> CivilDay { CivilDay(number: Int64(dayNumber(of: instant))) }

    /// The number of `day(of:)`, for those who only compare or count.
    public func dayNumber(of instant: Int64) -> Int32 {
        let instant = min(max(instant, Self.earliest), Self.latest)
        let number = (instant + offsets.milliseconds(at: instant)).floorDivided(by: millisecondsPerDay)
        return Int32(min(max(number, CivilDay.first.number), CivilDay.last.number))
    }

    /// The first instant at which it is that day, or a later one: where clocks skip midnight their first reading after it, and
    /// for a day that was left out altogether the start of the next.
    public func start(of day: CivilDay) -> Int64 {
        let number = min(max(day.number, CivilDay.first.number), CivilDay.last.number)
        return offsets.firstInstant(reading: number * millisecondsPerDay)
    }

    private static let earliest = CivilDay.first.number * millisecondsPerDay
    private static let latest = (CivilDay.last.number + 1) * millisecondsPerDay - 1
}

/// Of UTC; a day of a zone may have an hour less or more.
let millisecondsPerDay: Int64 = 86_400_000
let secondsPerDay: Int64 = 86_400
