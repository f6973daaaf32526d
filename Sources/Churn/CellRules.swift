// By which days cells are counted, for those who read them.

internal import Crypto
public import Zone

/// What the header `rules` of a cell says: the zone, and the version of its data.
public struct CellRules: Sendable, Equatable {
    /// The zone's name.
    public let zone: String
    public let header: String

    public init(_ zone: Zone) {
        self.zone = zone.name
        header = hexadecimal(Array(SHA256.digest(Array(zone.fingerprint.utf8).span).prefix(8)))
    }

    /// For somebody whose `churn.zone` this is, and who reads cells of other rules.
    public var warning: String {
        "cells were counted by days of another zone, or of another version of its data, than churn.zone=\(zone) here: set "
            + "churn.zone as perennial churn has it; if it is the same, have the same tzdata installed (cells from before an "
            + "update stay as they were counted)"
    }

    /// - Parameter header: of a cell; without bytes it has none, and says nothing.
    public func differ(from header: Span<UInt8>?) -> Bool {
        guard let header, !header.isEmpty else { return false }
        return !header.withUnsafeBufferPointer { $0.elementsEqual(self.header.utf8) }
    }
}
