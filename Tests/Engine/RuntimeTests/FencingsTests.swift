import Testing

@testable import Runtime

@Suite struct `A fencing` {
    private func fencings() -> Fencings { Fencings(sessionTimeout: .seconds(30), transactionTimeout: .seconds(10)) }

    @Test func `counts when the log has just answered, and the second one ends the worker`() {
        var fencings = fencings()
        fencings.asks(at: .seconds(1))
        fencings.answered(at: .seconds(2))
        fencings.asks(at: .seconds(100))
        #expect(fencings.fenced(at: .seconds(101)) == .once)
        #expect(fencings.fenced(at: .seconds(160)) == .again)
    }

    @Test func `counts alone when the one before is long ago`() {
        var fencings = fencings()
        #expect(fencings.fenced(at: .seconds(1)) == .once)
        #expect(fencings.fenced(at: .seconds(61)) == .once)
        #expect(fencings.fenced(at: .seconds(120)) == .again)
    }

    @Test func `does not count after a silence as long as a transaction may last`() {
        var fencings = fencings()
        for round in 0..<5 {
            let begin = Duration.seconds(20 * round)
            fencings.asks(at: begin)
            // More requests follow meanwhile: the silence began with the first.
            fencings.asks(at: begin + .seconds(9))
            #expect(fencings.fenced(at: begin + .seconds(10)) == .ofSilence)
        }
    }

    /// A duplicate of a request of the silence may arrive after the answer.
    @Test func `does not count soon after such a silence, and counts later`() {
        var fencings = fencings()
        fencings.asks(at: .zero)
        fencings.answered(at: .seconds(12))
        #expect(fencings.fenced(at: .seconds(13)) == .ofSilence)
        #expect(fencings.fenced(at: .seconds(21)) == .ofSilence)
        #expect(fencings.fenced(at: .seconds(22)) == .once)
        #expect(fencings.fenced(at: .seconds(23)) == .again)
    }

    /// Nothing was requested: a worker without input is silent for hours.
    @Test func `counts however long nothing was asked`() {
        var fencings = fencings()
        fencings.asks(at: .zero)
        fencings.answered(at: .milliseconds(5))
        #expect(fencings.fenced(at: .seconds(4000)) == .once)
        #expect(fencings.fenced(at: .seconds(4001)) == .again)
    }
}
