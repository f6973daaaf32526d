// The names of the headers of records.

/// The engine writes and reads these headers, and so does everything above it: no other module spells their names.
public enum HeaderName {
    /// The same after retries and replays.
    @inlinable public static var id: StaticString { "id" }
    /// `<type>/<version>`: see `RecordKind`.
    @inlinable public static var schema: StaticString { "schema" }
    /// `topic:partition:offset` of the record that caused this one.
    @inlinable public static var source: StaticString { "source" }
    /// `<program>/<version>`, and on outputs of workers `+<rules>` behind it: see `AppHeader`.
    @inlinable public static var app: StaticString { "app" }
    /// Why a record was refused, or is in the dead letters.
    @inlinable public static var reason: StaticString { "reason" }
    /// In a dead letter: more about the reason, if there is more.
    @inlinable public static var detail: StaticString { "detail" }
    /// In the dead letter of a timer that could not fire: its kind.
    @inlinable public static var timer: StaticString { "timer" }
    /// In the dead letter of a key that could not be settled: empty.
    @inlinable public static var settle: StaticString { "settle" }
    /// In the dead letter of an accepted gap: `<first missing offset>-<offset at which reading continues>`.
    @inlinable public static var gap: StaticString { "gap" }
    /// In the dead letter of a record that was too large for it: the bytes of the whole record.
    @inlinable public static var truncated: StaticString { "truncated" }
    /// In a redriven record: how often it was redriven, from 1.
    @inlinable public static var attempt: StaticString { "attempt" }
    /// When a dead letter was first written, before the broker's time replaced that: milliseconds as text.
    @inlinable public static var firstTimestamp: StaticString { "first-timestamp" }
    /// In a row of a table that was moved to its right partition: where it was.
    @inlinable public static var rerouted: StaticString { "rerouted" }
    /// Builds before 0.2 wrote the name of the type here, too. It is read for ever; only attempts still have it, for workers
    /// of 0.1 during an upgrade.
    @inlinable public static var type: StaticString { "type" }
    /// Only read: builds before 0.2 wrote the rules here, and not into `app`.
    @inlinable public static var rules: StaticString { "rules" }
}

extension RecordHeader {
    public init(_ name: StaticString, _ value: [UInt8]?) { self.init(name.description, value) }
    public init(_ name: StaticString, _ text: String) { self.init(name.description, text) }

    public func isNamed(_ name: StaticString) -> Bool { self.name == name.description }

    /// The headers of a record that no worker puts out: the engine itself writes those of outputs.
    public static func all(id: String, schema: String, app: String) -> [RecordHeader] {
        [
            RecordHeader(HeaderName.id, id), RecordHeader(HeaderName.schema, schema),
            RecordHeader(HeaderName.app, app),
        ]
    }
}
