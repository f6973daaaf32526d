// What is to be sent, and what is on its way.

internal import Consumption
internal import Notices
internal import Runtime

/// Between the books of all partitions and the sender. On the sender's thread.
final class SendDesk {
    /// An attempt that has begun and whose row is not kept by the log yet. Until then there is no other.
    struct Flight {
        let permit: Permit
        let number: Int64
        let originalTransactionId: Text
        let bundleId: Text
        let deadline: Int64
    }

    private(set) var agenda = Agenda()
    private(set) var flights: [AnswerName: Flight] = [:]

    func schedule(_ answer: OpenAnswer) {
        // It is looked at again when its attempt has ended.
        if flights[answer.name] == nil { agenda.schedule(answer) }
    }

    /// It is not wanted any more, or not here.
    func drop(_ name: AnswerName) {
        agenda.remove(name)
        flights[name]?.permit.withdraw()
    }

    func begin(_ name: AnswerName, _ flight: Flight) {
        agenda.remove(name)
        flights[name] = flight
    }

    func end(_ name: AnswerName) { flights[name] = nil }

    /// What has begun and is not on the wire yet stays here.
    func withdrawFlights() {
        for flight in flights.values { flight.permit.withdraw() }
    }

    /// It cannot be sent by now: it is looked at again then.
    func postpone(_ answer: OpenAnswer, to wall: Int64) {
        var later = answer
        later.dueAt = wall
        schedule(later)
    }

    func advance(to wall: Int64, _ elapsed: Duration) { agenda.advance(to: wall, elapsed) }
}
