// The usual form of a consumer: one state per key of its records.

public import Log

/// A processor whose state belongs to the key of its records. The engine decodes the state before each call and encodes
/// it after.
public protocol KeyedProcessor: Processor {
    associatedtype State

    /// `format` is one of the formats that the definition says it reads.
    func decode(_ bytes: Span<UInt8>, format: UInt8) throws(ProcessFailure) -> State
    /// Encodes in the definition's `stateFormat`.
    func encode(_ state: State, into bytes: inout [UInt8])

    /// `state` is the state of the record's key. It is nil if there is none; set it to nil to delete it. `timers` sets
    /// timers of the key.
    func process(_ record: borrowing RecordView, _ state: inout State?, _ turn: KeyedTurn) throws(ProcessFailure)
    func fire(_ kind: UInt8, key: [UInt8], _ state: inout State?, _ turn: KeyedTurn) throws(ProcessFailure)
}

/// A turn for one key.
public struct KeyedTurn {
    public let turn: Turn
    @usableFromInline var timers = TimerChanges()

    @usableFromInline init(_ turn: Turn) { self.turn = turn }

    public var clock: Int64 { turn.clock }
    public var partition: Int32 { turn.partition }

    /// See `Turn.emit`.
    public func emit(_ output: Int, key: Span<UInt8>?, value: Span<UInt8>?, partition: Int32? = nil) {
        turn.emit(output, key: key, value: value, partition: partition)
    }

    /// Sets or moves the key's timer of this kind, if the key still has a state after the call. nil cancels the timer.
    public func setTimer(_ kind: UInt8, due: Int64?) { timers.changes.append((kind, due)) }
}

/// Timers wait until the value that they belong to is written.
@usableFromInline final class TimerChanges {
    @usableFromInline var changes: [(kind: UInt8, due: Int64?)] = []
    @usableFromInline init() {}
}

extension KeyedProcessor {
    @inlinable public func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        guard let key = record.key else { throw ProcessFailure("no_key", "the record has no key") }
        let place = try turn.state(key)
        var state = try load(place)
        let keyed = KeyedTurn(turn)
        try process(record, &state, keyed)
        save(state, in: place, keyed)
    }

    @inlinable public func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        let place = try turn.state(timer.key.span)
        var state = try load(place)
        let keyed = KeyedTurn(turn)
        try fire(timer.kind, key: timer.key, &state, keyed)
        save(state, in: place, keyed)
    }

    public func fire(_ kind: UInt8, key: [UInt8], _ state: inout State?, _ turn: KeyedTurn) throws(ProcessFailure) {
        throw ProcessFailure("no_such_timer", "this processor sets no timers of kind \(kind)")
    }

    @inlinable func load(_ place: KeyState) throws(ProcessFailure) -> State? {
        guard let bytes = place.value else { return nil }
        return try decode(bytes.span, format: place.format)
    }

    @inlinable func save(_ state: State?, in place: KeyState, _ turn: KeyedTurn) {
        guard let state else { return place.delete() }
        var bytes: [UInt8] = []
        encode(state, into: &bytes)
        // A value that has not changed is not written again.
        if place.value != bytes { place.put(bytes.span) }
        for change in turn.timers.changes { place.setTimer(change.kind, due: change.due) }
    }
}
