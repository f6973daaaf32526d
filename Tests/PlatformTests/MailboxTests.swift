import KafkaTestKit
import Platform
import Testing

@Suite struct `A mailbox` {
    @Test func `gives what was posted, in order and once`() {
        let mailbox = Mailbox<Int>(capacity: 3)
        #expect(mailbox.post(1) && mailbox.post(2) && mailbox.post(3))
        #expect(!mailbox.post(4))
        #expect(mailbox.take(waiting: .zero) == [1, 2, 3])
        #expect(mailbox.take(waiting: .zero) == [])
        #expect(mailbox.post(5))
    }

    @Test func `wakes a reader that waits`() async throws {
        let mailbox = Mailbox<Int>(capacity: 1)
        let reader = WorkerThread.start("reader") {
            var taken: [Int] = []
            while taken.isEmpty { taken = mailbox.take(waiting: .seconds(60)) }
            #expect(taken == [7])
        }
        #expect(mailbox.post(7))
        try await reader.join()
    }

    @Test func `takes nothing once it is closed, wakes its reader, and gives the rest`() async throws {
        let mailbox = Mailbox<Int>(capacity: 2)
        #expect(mailbox.post(1))
        mailbox.close()
        #expect(!mailbox.post(2))
        #expect(mailbox.take(waiting: .seconds(60)) == [1])
        #expect(mailbox.take(waiting: .seconds(60)) == [])
    }
}
