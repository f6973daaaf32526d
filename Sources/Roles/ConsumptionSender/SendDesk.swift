// The answers to be sent, and the attempts in flight.

internal import Consumption
internal import Notices
internal import Runtime

/// Connects the books of all partitions with the sender. Used on the sender's thread.
final class SendDesk {
    /// An attempt that has begun and whose row the log does not have yet. Until then the answer has no other attempt.
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
        // An answer in flight is scheduled after its attempt has ended.
        if flights[answer.name] == nil { agenda.schedule(answer) }
    }

    /// The answer is no longer wanted, or no longer belongs to this process.
    func drop(_ name: AnswerName) {
        agenda.remove(name)
        flights[name]?.permit.withdraw()
    }

    func begin(_ name: AnswerName, _ flight: Flight) {
        agenda.remove(name)
        flights[name] = flight
    }

    func end(_ name: AnswerName) { flights[name] = nil }

    /// Attempts that have begun but are not being sent yet are stopped.
    func withdrawFlights() {
        for flight in flights.values { flight.permit.withdraw() }
    }

    /// The answer cannot be sent now: it is scheduled again for that time.
    func postpone(_ answer: OpenAnswer, to wall: Int64) {
        var later = answer
        later.dueAt = wall
        schedule(later)
    }

    func advance(to wall: Int64, _ elapsed: Duration) { agenda.advance(to: wall, elapsed) }
}
