// A cell of `churn-cells` as it is stored in a copy.

internal import Churn
internal import Store

/// A sixth of the size of the record: the key contains the rest.
struct KeptCell: Equatable, Sendable {
    let sums: PackedSums
    /// The worker's clock when it wrote the cell.
    let asOf: Int64

    init(_ record: CellRecord) {
        sums = PackedSums(record.sums)
        asOf = record.mark.asOf
    }

    // The clock, little-endian, and the sums.

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(littleEndian: asOf)
        return bytes + sums.bytes
    }

    /// nil for bytes that are not a cell.
    init?(_ bytes: [UInt8]) {
        var clock = NoteReader(Array(bytes.prefix(8)))
        guard let asOf = clock.take(Int64.self), let sums = PackedSums(bytes: Array(bytes.dropFirst(8))) else {
            return nil
        }
        self.asOf = asOf
        self.sums = sums
    }
}
