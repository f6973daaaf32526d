import Log
import Testing

@testable import ConsumptionSender

@Suite struct `A fresh view` {
    private let ends = [NextOffset(5), NextOffset(7)]

    @Test func `is as of the question, once the worker has passed the ends and its word is read`() {
        var view = FreshView()
        #expect(!view.isGood(for: .zero, at: .zero))
        view.begin(asked: .seconds(10), ends: ends)
        func advance(_ positions: [Int64], readAsOf: Duration?, at now: Duration) -> Bool {
            view.advance(positions: positions.map { NextOffset($0) }, readAsOf: readAsOf, at: now)
        }
        #expect(view.isLooking && !view.waitsForOutputs)
        #expect(!advance([5, 6], readAsOf: .seconds(99), at: .seconds(10)))
        #expect(!advance([4, 9], readAsOf: .seconds(99), at: .seconds(10)))
        #expect(!view.waitsForOutputs)
        #expect(advance([5, 7], readAsOf: .seconds(99), at: .milliseconds(10_200)))
        #expect(view.waitsForOutputs)
        // What was read by then was read before the worker had written.
        #expect(!advance([5, 7], readAsOf: .milliseconds(10_199), at: .milliseconds(10_300)))
        #expect(!advance([5, 7], readAsOf: nil, at: .milliseconds(10_300)))
        #expect(view.asOf == nil)
        #expect(!advance([5, 7], readAsOf: .milliseconds(10_200), at: .milliseconds(10_300)))
        #expect(view.asOf == .seconds(10) && !view.isLooking)
    }

    @Test func `is good for what was due before it, for a second`() {
        var view = FreshView()
        view.begin(asked: .seconds(10), ends: [])
        _ = view.advance(positions: [], readAsOf: nil, at: .seconds(10))
        _ = view.advance(positions: [], readAsOf: .seconds(10), at: .seconds(10))
        #expect(view.isGood(for: .seconds(10), at: .seconds(11)))
        #expect(!view.isGood(for: .milliseconds(10_001), at: .seconds(11)))
        #expect(!view.isGood(for: .seconds(10), at: .milliseconds(11_001)))
        view.reset()
        #expect(!view.isGood(for: .seconds(10), at: .seconds(11)))
    }

    @Test func `is good although the worker was far behind, once it has come to the look`() {
        var view = FreshView()
        view.begin(asked: .seconds(10), ends: ends)
        let passes = view.advance(positions: ends, readAsOf: nil, at: .seconds(40))
        #expect(passes)
        _ = view.advance(positions: ends, readAsOf: .seconds(41), at: .seconds(41))
        #expect(view.isGood(for: .seconds(10), at: .milliseconds(41_900)))
        #expect(!view.isGood(for: .seconds(11), at: .milliseconds(41_900)))
    }
}
