import KafkaTestKit
import Platform
import Synchronization
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

    @Test func `gives each of many readers the oldest`() async throws {
        let mailbox = Mailbox<Int>(capacity: 5000)
        let sum = Atomic(0)
        let taken = Atomic(0)
        let readers = (0..<3).map { number in
            WorkerThread.start("reader-\(number)") {
                var last = 0
                while taken.load(ordering: .relaxed) < 4000 {
                    guard let next = mailbox.takeOne(waiting: .milliseconds(10)) else { continue }
                    #expect(next > last)
                    last = next
                    sum.add(next, ordering: .relaxed)
                    taken.add(1, ordering: .relaxed)
                }
            }
        }
        for number in 1...4000 { #expect(mailbox.post(number)) }
        for reader in readers { try await reader.join() }
        #expect(sum.load(ordering: .relaxed) == 4000 * 4001 / 2)
        #expect(mailbox.takeOne(waiting: .zero) == nil)
    }

    @Test func `counts as full by what has not been taken`() {
        let mailbox = Mailbox<Int>(capacity: 2)
        #expect(mailbox.post(1) && mailbox.post(2) && !mailbox.post(3))
        #expect(mailbox.takeOne(waiting: .zero) == 1)
        #expect(mailbox.post(4) && !mailbox.post(5))
        #expect(mailbox.take(waiting: .zero) == [2, 4])
    }

    @Test func `gives what is urgent first, and has room for it beside a crowd`() {
        let mailbox = Mailbox<Int>(capacity: 2)
        #expect(mailbox.post(1) && mailbox.post(2) && !mailbox.post(3))
        #expect(mailbox.post(10, isUrgent: true) && mailbox.post(11, isUrgent: true))
        #expect(!mailbox.post(12, isUrgent: true))
        #expect((0..<3).map { _ in mailbox.takeOne(waiting: .zero) } == [10, 11, 1])
        #expect(mailbox.post(12, isUrgent: true))
        #expect(mailbox.take(waiting: .zero) == [12, 2])
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
