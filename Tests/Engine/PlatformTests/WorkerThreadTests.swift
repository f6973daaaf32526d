import Glibc
import KafkaTestKit
import Platform
import Synchronization
import Testing

@Suite struct `A worker thread` {
    private struct Fault: Error, Equatable { let number: Int }

    @Test func `has a result when it has ended, and none before`() async throws {
        let mayEnd = Latch()
        let worker = WorkerThread.start("waits") { mayEnd.wait() }
        #expect(!worker.isFinished && worker.result == nil)
        mayEnd.open()
        try await waitUntil("it has ended") { worker.isFinished }
        #expect(throws: Never.self) { try worker.result?.get() }
    }

    @Test func `hands on what its work throws, as result and to everyone who joins`() async throws {
        let mayEnd = Latch()
        let worker = WorkerThread.start("throws") {
            mayEnd.wait()
            throw Fault(number: 7)
        }
        let begun = [Latch(), Latch()]
        let waiters = begun.map { latch in
            Task {
                latch.open()
                try await worker.join()
            }
        }
        try await waitUntil("both are about to join") { begun.allSatisfy(\.isOpen) }
        mayEnd.open()
        for waiter in waiters { await #expect(throws: Fault(number: 7)) { try await waiter.value } }
        // And for a caller that comes after the end.
        await #expect(throws: Fault(number: 7)) { try await worker.join() }
        #expect(throws: Fault(number: 7)) { try worker.result?.get() }
    }

    @Test func `joins only after its work`() async throws {
        let isDone = Mutex(false)
        try await WorkerThread.start("works") {
            pause(for: .milliseconds(50))
            isDone.withLock { $0 = true }
        }.join()
        #expect(isDone.withLock { $0 })
    }

    @Test func `is a thread of its own with the name it was given, cut to what Linux keeps`() async throws {
        let seen = Mutex("")
        let caller = gettid()
        try await WorkerThread.start("a-name-of-more-than-15") {
            #expect(gettid() != caller)
            let name = try readFile("/proc/thread-self/comm")
            seen.withLock { $0 = String(decoding: name, as: UTF8.self) }
        }.join()
        #expect(seen.withLock { $0 } == "a-name-of-more-\n")
    }
}
