import KafkaTestKit
import Platform
import Testing

@Suite struct `A latch` {
    @Test func `lets a waiting thread through when it opens`() async throws {
        let latch = Latch()
        let waiter = WorkerThread.start("waits") { #expect(latch.wait(for: patience)) }
        latch.open()
        try await waiter.join()
        #expect(latch.isOpen)
    }

    @Test func `stays open for those who come later`() {
        let latch = Latch()
        latch.open()
        latch.open()
        latch.wait()
        #expect(latch.wait(for: .zero))
    }

    @Test func `keeps the deadline when nobody opens it`() {
        let begin = ContinuousClock.now
        #expect(!Latch().wait(for: .milliseconds(100)))
        let took = begin.duration(to: .now)
        #expect(took >= .milliseconds(100) && took < patience / 2, "\(took)")
    }
}
