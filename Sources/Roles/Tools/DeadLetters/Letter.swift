// One dead letter, and what its headers say.

import Contract
import Kafka
import Log

/// One record of `rejected` or of a worker's dead letters.
struct Letter: Sendable {
    let environment: Contract.Environment
    let partition: Int32
    let offset: Int64
    /// When it first arrived, in milliseconds since 1970. For a worker's letter: the timestamp of its record.
    let firstTime: Int64
    let marks: LetterMarks
    /// In `rejected`: the SHA-256 of the body, as hexadecimal text.
    let key: String
    let headers: [RecordHeader]
    let bytes: Int

    init(_ record: borrowing ConsumedRecord, in environment: Contract.Environment) {
        self.environment = environment
        partition = record.partition
        offset = record.offset
        headers = record.headers
        bytes = record.value?.count ?? 0
        marks = LetterMarks(headers, hasValue: record.value != nil)
        key = record.copyOfKey().map { String(decoding: $0, as: UTF8.self) } ?? ""
        let written = record.timestamp ?? 0
        // A notification arrives before its letter is written. A later time is wrong, and would move the clock of a partition.
        firstTime = marks.firstTimestamp.map { (0...written).contains($0) ? $0 : written } ?? written
    }

    var reason: String { marks.reason }
    var position: String { "\(partition):\(offset)" }
}

/// Why a record is a letter, separated from the headers that the record had before.
///
/// The writer of a letter appends `reason` to the record's own headers, and everything else after `reason`. So a record that
/// already had headers of these names, because it was derived from another or was a letter before, keeps its own.
struct LetterMarks: Sendable, Equatable {
    /// Headers of the record before it became a letter.
    let own: [RecordHeader]
    let reason: String
    let detail: String?
    /// Topic, partition and offset of the record that could not be processed. For a timer's letter: of the record that made the
    /// timer fire. For the letter of a settled key: of the last record before the commit.
    let source: String?
    let firstTimestamp: Int64?
    /// The kind of the timer that could not fire; nil for other letters.
    let timer: String?
    /// The letter is about a key that could not be settled.
    let isOfSettling: Bool
    /// The first and last offset of an accepted gap; nil for other letters.
    let gap: String?

    private static let ours = Set(
        [HeaderName.reason, HeaderName.detail, HeaderName.source, HeaderName.firstTimestamp, HeaderName.app]
            .map(\.description))

    init(_ headers: [RecordHeader], hasValue: Bool) {
        let start = headers.lastIndex { $0.isNamed(HeaderName.reason) } ?? headers.endIndex
        let added = headers[start...]
        func text(_ name: StaticString) -> String? {
            added.last { $0.isNamed(name) }?.value.map { String(decoding: $0, as: UTF8.self) }
        }
        // Headers that other programs have appended since, such as a mirror of topics, are kept.
        own = headers[..<start] + added.filter { !Self.ours.contains($0.name) }
        reason = text(HeaderName.reason) ?? "unknown"
        detail = text(HeaderName.detail)
        source = text(HeaderName.source)
        firstTimestamp = text(HeaderName.firstTimestamp).flatMap { Int64($0) }
        let whole = hasValue || start != 1 ? nil : headers[0]
        isOfSettling = whole?.isNamed(HeaderName.settle) ?? false
        func value(of name: StaticString) -> String? {
            guard let whole, whole.isNamed(name) else { return nil }
            return String(decoding: whole.value ?? [], as: UTF8.self)
        }
        timer = value(of: HeaderName.timer)
        gap = value(of: HeaderName.gap)
    }
}
