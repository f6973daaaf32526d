// Whether a tool can read the records of a topic, by their headers.

import Log
import Records

/// Judges the records of one topic as the workers do. A tool goes on after a record of a later build, because the others still
/// tell something, but it says what is missing.
struct HeaderCheck {
    private let kind: RecordKind
    /// What to tell the user about records that a later build wrote. nil: no record of a later build was read.
    private(set) var tooNew: String?

    init(_ type: RecordType) { kind = RecordKind(type.rawValue, version: type.version) }

    mutating func meaning(of record: borrowing RecordView) -> RecordKind.Meaning {
        let meaning = kind.meaning(of: record, upgrade: "the perennial that reads it")
        if case .newer(let words) = meaning { tooNew = words }
        return meaning
    }
}
