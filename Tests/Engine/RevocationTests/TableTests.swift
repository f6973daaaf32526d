import Testing

@testable import Crypto
@testable import Revocation

/// Decisions in virtual time.
@Suite struct `What is known of revocations` {
    private static let start = Moment(wall: Chain.now, steady: ContinuousClock.now)
    private let chain: TrustedChain

    init() throws { chain = try Chain().trusted }

    private func after(_ duration: Duration) -> Moment {
        Moment(
            wall: Self.start.wall + duration.components.seconds * 1000, steady: Self.start.steady.advanced(by: duration)
        )
    }

    private func asks(_ effects: [RevocationTable.Effect]) -> Int {
        effects.count { if case .ask = $0 { true } else { false } }
    }

    private func outcomes(_ effects: [RevocationTable.Effect]) -> [RevocationStatus] {
        effects.compactMap { if case .finish(_, let status) = $0 { status } else { nil } }
    }

    /// A table that has asked about the chain and got an answer at the start.
    private func table(after outcome: InquiryOutcome) -> RevocationTable {
        var table = RevocationTable(maxWaiters: 10)
        #expect(table.status(of: chain, at: Self.start) == (.unknown, true))
        #expect(asks(table.step(at: Self.start).effects) == 1)
        #expect(asks(table.step(at: Self.start).effects) == 0, "it is being asked about already")
        _ = table.learn(outcome, of: chain, at: Self.start)
        return table
    }

    private func good(for duration: Duration) -> InquiryOutcome {
        .good(until: Chain.now + duration.components.seconds * 1000)
    }

    @Test func `a good answer is asked for again in time, and relied on to its end`() {
        var table = table(after: good(for: .seconds(1000)))
        #expect(table.step(at: after(.seconds(749))).next == after(.seconds(750)).steady)
        #expect(asks(table.step(at: after(.seconds(749))).effects) == 0)
        #expect(asks(table.step(at: after(.seconds(750))).effects) == 1)
        _ = table.learn(.failed(.httpStatus), of: chain, at: after(.seconds(751)))
        #expect(table.status(of: chain, at: after(.seconds(999))).status == .good)
        #expect(table.status(of: chain, at: after(.seconds(1000))).status == .unknown)
    }

    @Test func `an answer is relied on for four hours at most`() {
        var table = table(after: good(for: .seconds(7 * 24 * 3600)))
        #expect(table.status(of: chain, at: after(.seconds(4 * 3600 - 1))).status == .good)
        #expect(table.status(of: chain, at: after(.seconds(4 * 3600))).status == .unknown)
    }

    @Test func `a clock that is set back makes no answer hold longer`() {
        var table = table(after: good(for: .seconds(1000)))
        var later = after(.seconds(1000))
        later.wall -= 24 * Chain.hour
        #expect(table.status(of: chain, at: later).status == .unknown)
    }

    @Test func `an answer that ends at once is asked for once a second`() {
        var table = table(after: good(for: .zero))
        #expect(asks(table.step(at: after(.milliseconds(999))).effects) == 0)
        #expect(asks(table.step(at: after(.seconds(1))).effects) == 1)
    }

    @Test func `failed questions are asked again after 1, 2, 4 and at last 60 seconds`() {
        let pauses = (1...9).map { RevocationTable.pause(afterFailures: $0).components.seconds }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60])
        var table = table(after: .failed(.httpStatus))
        #expect(asks(table.step(at: after(.milliseconds(999))).effects) == 0)
        #expect(asks(table.step(at: after(.seconds(1))).effects) == 1)
        _ = table.learn(.failed(.httpStatus), of: chain, at: after(.seconds(1)))
        #expect(table.step(at: after(.seconds(1))).next == after(.seconds(3)).steady)
    }

    @Test func `what is revoked stays so, and is not asked about again`() {
        var table = table(after: .revoked)
        let year = after(.seconds(365 * 24 * 3600))
        #expect(table.step(at: year).next == nil)
        #expect(asks(table.step(at: year).effects) == 0)
        #expect(table.status(of: chain, at: year).status == .revoked)
    }

    @Test func `trouble is told once, and its end`() {
        var table = table(after: .failed(.httpStatus))
        // The first one was logged where the table was made.
        #expect(table.learn(.failed(.noAddress), of: chain, at: Self.start) == nil)
        #expect(table.learn(good(for: .seconds(10)), of: chain, at: Self.start) == .knownAgain(leaf: chain.leaf.serial))
        #expect(table.learn(good(for: .seconds(10)), of: chain, at: Self.start) == nil)
        #expect(
            table.learn(.failed(.noAddress), of: chain, at: Self.start)
                == .unknown(leaf: chain.leaf.serial, .noAddress))
    }

    @Test func `of many chains those used last are remembered, and the revoked ones`() throws {
        var table = table(after: .revoked)
        let limit = RevocationTable.limitChains
        let leaves = try (0..<limit + 5).map { try Chain.make("Leaf", "\($0)", .p256, []).certificate }
        let others = leaves.map { TrustedChain(leaf: $0, intermediate: chain.intermediate, root: chain.root) }
        for other in others { #expect(table.status(of: other, at: Self.start).isNew) }
        #expect(table.count == limit)
        #expect(table.status(of: chain, at: Self.start) == (.revoked, false))
        #expect(table.status(of: others[limit + 4], at: Self.start) == (.unknown, false))
        #expect(table.status(of: others[0], at: Self.start) == (.unknown, true))
    }

    @Test func `who waits is told when all chains are known`() throws {
        let other = try Chain(seed: "other").trusted
        var table = RevocationTable(maxWaiters: 10)
        let deadline = after(.seconds(2)).steady
        #expect(
            table.wait(for: [chain, other], until: deadline, at: Self.start) { _ in } == .waiting(isUrgent: true))
        #expect(asks(table.step(at: Self.start).effects) == 2)
        // A revoked part gives no verdict yet while nothing is known about the whole.
        _ = table.learn(.revoked, of: other, at: after(.seconds(1)))
        #expect(outcomes(table.step(at: after(.seconds(1))).effects) == [])
        _ = table.learn(good(for: .seconds(100)), of: chain, at: after(.seconds(1)))
        #expect(outcomes(table.step(at: after(.seconds(1))).effects) == [.revoked])
        #expect(table.wait(for: [chain], until: deadline, at: after(.seconds(1))) { _ in } == .known(.good))
    }

    @Test func `who waits is told at the deadline that nothing is known`() {
        var table = RevocationTable(maxWaiters: 10)
        let deadline = after(.seconds(2)).steady
        _ = table.wait(for: [chain], until: deadline, at: Self.start) { _ in }
        #expect(table.wait(for: [chain], until: deadline, at: Self.start) { _ in } == .waiting(isUrgent: false))
        let step = table.step(at: Self.start)
        #expect(step.next == deadline && outcomes(step.effects) == [])
        #expect(outcomes(table.step(at: after(.milliseconds(1999))).effects) == [])
        #expect(outcomes(table.step(at: after(.seconds(2))).effects) == [.unknown, .unknown])
        #expect(outcomes(table.step(at: after(.seconds(3))).effects) == [])
    }
}
