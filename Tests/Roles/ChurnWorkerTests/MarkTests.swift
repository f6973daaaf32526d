import Contract
import JSON
import MakeBelieve
import Testing
import WorkerTestKit

/// Another subscription of the same partition.
private let neighbour = Shop.neighbours(of: "1000", 1)[0]

/// A month that ends when the day has begun already...
private let month = start(at: d(0) + 3 * hour)

/// ...and Apple's extension of it, signed long before its end and arriving at any time.
private func extended(to end: Int64) -> Told {
    Told(
        "RENEWAL_EXTENDED", at: d(29),
        bought("1", from: d(0) + 3 * hour, to: end, signed: d(29), ["storefront": "\"USA\""]))
}

/// `asOf` and `offset` name the last record after which a counter had another value than before.
@Suite struct `The mark of a cell` {
    private let born = Shop.cell("2026-01-01")
    private let ended = Shop.cell("2026-01-31")

    @Test func `is the record that changed it last`() throws {
        let shop = try Shop()
        try shop.tell(start())
        try shop.tick(d(31))
        try shop.tell(renewal(of: 2), received: d(32))
        try shop.tell(Told("TEST", at: d(33)), of: neighbour)
        let cells = try shop.cells()
        #expect(cells[born]?.mark == [d(0), 0])
        #expect(cells[ended]?.mark == [d(32), 2])
        #expect(cells[ended]?["counts"]?["renewed"]?.integer == 1)
    }

    @Test func `has the clock of its record, which what comes from yesterday does not turn back`() throws {
        let shop = try Shop()
        try shop.tick(d(50))
        try shop.tell(start(), received: d(1))
        let cells = try shop.cells()
        #expect(cells[born]?.mark == [d(50), 1] && cells[ended]?.mark == [d(50), 1])
    }

    @Test func `stays when a record takes back all that its own timers have told`() throws {
        let shop = try Shop()
        try shop.tell(month)
        // The change of another subscription on the day that is counted and taken back.
        try shop.tell(start(at: d(30) + hour), of: neighbour)
        try shop.work()
        let before = try #require(try shop.cells()[ended])
        let events = try shop.seen(.churnEvents).count
        // The end of the month, which was due meanwhile, and the notification that it was not the end.
        try shop.tell(extended(to: d(30) + 5 * hour), received: d(30) + 4 * hour)
        try shop.work()
        #expect(try shop.cells()[ended] == before)
        #expect(try shop.seen(.churnEvents).count == events + 2)
        #expect(try shop.wrong() == [])
    }

    /// Thousands of midnights are due with one record: the worker commits between them.
    @Test func `is the same wherever commits fall among the timers of a record`() throws {
        let shop = try Shop()
        let late = d(30 + 12_000)
        try shop.tell(month)
        try shop.tell(start(at: d(30) + hour), of: neighbour)
        try shop.work()
        let before = try #require(try shop.cells()[ended])
        try shop.tell(extended(to: late + day), received: late)
        try shop.work()
        // Written, and taken back in another commit.
        let told = try shop.seen(.churnCells).filter { $0.keyText == ended }.map { try JSONValue.read($0.value ?? []) }
        #expect(told.map { $0["offset"]?.integer } == [1, 2, 1], "\(told)")
        #expect(told.last == before)
        #expect(try shop.wrong() == [])
    }

    @Test func `stays when a record fills a cell again that its timers have emptied, wherever commits fall`() throws {
        let whole = try toldOfAnEnd(committingBefore: true)
        let parted = try toldOfAnEnd(committingBefore: false)
        // Gone and back in two commits of one record; without a commit in between, only written again.
        #expect(whole.map { $0.value == nil } == [false, false])
        #expect(parted.map { $0.value == nil } == [false, true, false])
        #expect(try JSONValue.read(parted.last?.value ?? []).mark == [d(31), 2])
        #expect(parted.last == parted.first && parted.last == whole.last)
    }

    /// All values of the cell of the last day of a month. A renewal that begins another month later was published ahead, so
    /// nobody has left. Years later a notification says that the subscription had ended, and with that record all timers from the
    /// renewal on fire.
    private func toldOfAnEnd(committingBefore commits: Bool) throws -> [WorkerSimulation.Seen] {
        let shop = try Shop()
        try shop.tell(start())
        let ahead = bought("2", from: d(61), to: d(91), signed: d(29), ["storefront": "\"USA\""])
        try shop.tell(Told("DID_RENEW", at: d(29), ahead))
        try shop.tick(d(31))
        try shop.work()
        // The last record alone has just fewer due midnights than one commit takes, and with the records before it just more.
        try shop.tick(d(60))
        if commits { try shop.work() }
        let over = bought("1", from: d(0), to: d(30), signed: d(30), ["storefront": "\"USA\""])
        try shop.tell(Told("EXPIRED", at: d(30), over), received: d(60 + 4_980))
        #expect(try shop.wrong() == [])
        return try shop.seen(.churnCells).filter { $0.keyText == ended }.map { seen in
            var seen = seen
            // The end marker of a transaction takes an offset, so offsets have gaps there.
            seen.offset = 0
            return seen
        }
    }

    @Test func `goes on where it was after the process was killed`() throws {
        for losesDisk in [false, true] {
            let shop = try Shop()
            try shop.tell(start())
            try shop.tick(d(31))
            try shop.work()
            let process = shop.simulation.processes[0]
            shop.simulation.crash(process)
            if losesDisk { shop.simulation.loseDisk(of: process) }
            shop.simulation.start(process)
            try shop.tell(start(at: d(30)), of: neighbour, received: d(32))
            try shop.tell(start(at: d(30)), of: neighbour, received: d(33))
            #expect(try shop.cells()[born]?.mark == [d(0), 0])
            #expect(try shop.cells()[ended]?.mark == [d(32), 2])
            #expect(try shop.wrong() == [])
        }
    }
}
