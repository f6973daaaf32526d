// What one record, or time alone, changed in one cell.

internal import JSON
internal import Notices
internal import Records

/// A value of `churn-events`. The sum of all events of a cell is the cell.
struct ChurnEvent: Sendable {
    var originalTransactionId: [UInt8]
    var cell: [UInt8]
    var change: Sums
    /// `signedDate` of the cause, or the due time of a timer.
    var at: Int64
    var cause: Cause?

    init(originalTransactionId: [UInt8], cell: [UInt8], change: Sums, at: Int64, cause: Cause?) {
        self.originalTransactionId = originalTransactionId
        self.cell = cell
        self.change = change
        self.at = at
        self.cause = cause
    }

    /// - Parameter id: the id of the record.
    func value(id: String) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("v", RecordType.churnEvent.version)
            json.member("id", id)
            json.member("originalTransactionId", utf8: originalTransactionId)
            json.member("cell", utf8: cell)
            change.write(to: &json)
            json.member("at", at)
            json.name("cause")
            if let cause { cause.write(to: &json) } else { json.null() }
        }
        return json.bytes
    }
}
