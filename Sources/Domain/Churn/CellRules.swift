// The time zone whose days the cells are counted by, for readers of cells.

internal import Crypto
public import Zone

/// The rules that a cell's header names: the zone and the version of its data.
public struct CellRules: Sendable, Equatable {
    /// The zone's name.
    public let zone: String
    public let header: String

    public init(_ zone: Zone) {
        self.zone = zone.name
        header = hexadecimal(Array(SHA256.digest(Array(zone.fingerprint.utf8).span).prefix(8)))
    }

    /// The warning for a reader who has this `churn.zone` and reads cells with other rules.
    public var warning: String {
        "the cells were counted with another time zone, or another version of its data, than churn.zone=\(zone) here: set "
            + "churn.zone to the value that perennial churn uses; if they are equal, install the same version of tzdata "
            + "(cells from before an update of tzdata keep the old days)"
    }

    /// - Parameter header: the cell's header. An empty header counts as no difference.
    public func differ(from header: Span<UInt8>?) -> Bool {
        guard let header, !header.isEmpty else { return false }
        return !header.withUnsafeBufferPointer { $0.elementsEqual(self.header.utf8) }
    }
}
