import Log
import Platform
import Testing

@testable import Cluster
@testable import CommandLine
@testable import Kafka
@testable import Roles
@testable import Tools

@Suite struct `Offsets asked for wrongly` {
    @Test(arguments: [
        (["offsets"], "usage: perennial offsets show|reset|accept-gap [GROUP|WORKER]"),
        (["offsets", "drop"], "show, reset or accept-gap, not \"drop\""),
        (["offsets", "reset"], "reset needs the name of a group"),
        (["offsets", "reset", "readers"], "reset needs --to: beginning"),
        (["offsets", "reset", "readers", "--to", "yesterday"], "--to takes beginning, end, 2h"),
        (["offsets", "reset", "readers", "--to", "0:1,0:2"], "--to names partition 0 twice"),
        (["offsets", "reset", "readers", "--to", "0:-1"], "--to takes"),
        (["offsets", "show", "--to", "end"], "--to does not belong to show"),
        (["offsets", "show", "--apply"], "--apply does not belong to show"),
        (["offsets", "reset", "readers", "--partition", "1"], "--partition does not belong to reset"),
        (["offsets", "accept-gap"], "accept-gap needs a worker"),
        (["offsets", "accept-gap", "clock"], "takes entitlements, churn or consumption, not \"clock\""),
        (["offsets", "accept-gap", "churn", "--partition", "-1"], "--partition takes a number from 0"),
        (["offsets", "accept-gap", "churn", "--to", "2h"], "accept-gap --to takes beginning or end, not \"2h\""),
        (["offsets", "accept-gap", "churn", "--apply"], "name it with --partition"),
        (["offsets", "accept-gap", "churn", "--topic", "x"], "--topic does not belong to accept-gap"),
        (["offsets", "show", "--format", "xml"], "--format must be text or json, not \"xml\""),
        (["offsets", "show"], "kafka.bootstrap.servers is not set"),
    ])
    func `are answered with what is right and exit code 2`(arguments: [String], words: String) {
        let recorder = Recorder()
        #expect(Program.standard.run(arguments, environment: [], output: recorder.output) == .wrongUsage)
        #expect(recorder.messages.contains { $0.contains(words) }, "\(recorder.messages)")
        #expect(recorder.data.isEmpty)
    }

    @Test(arguments: [
        ("appstore.production.entitlements", "run perennial replay entitlements --name NAME"),
        ("another.prefix.sandbox.churn", "run perennial replay churn --name NAME"),
        ("consumption", "run perennial replay consumption --name NAME"),
        ("appstore.production.entitlements.replay-new", "run perennial replay entitlements --name NAME"),
        ("appstore.production.clock", "has no positions"), ("clock", "has no positions"),
    ])
    func `positions of a worker with state and of the clock are never reset`(group: String, words: String) {
        let recorder = Recorder()
        let arguments = ["offsets", "reset", group, "--to", "beginning", "--apply"]
        #expect(Program.standard.run(arguments, environment: [], output: recorder.output) == .wrongUsage)
        #expect(recorder.messages.contains { $0.contains(words) }, "\(recorder.messages)")
    }

    @Test(arguments: ["readers", "dashboards.churn.copy", "appstore.production.entitlements-copy", "my.churn"])
    func `positions of other groups may be`(group: String) {
        #expect(OffsetsQuery.refusal(of: group) == nil)
    }
}

@Suite struct `A lag` {
    private func count(
        _ from: Int64, _ to: Int64, _ records: [(offset: Int64, timestamp: Int64?)], next: Int64? = nil
    ) -> LagProbe.Count {
        var count = LagProbe.Count(LagProbe.Span(from: NextOffset(from), to: NextOffset(to)))
        for record in records { count.add(offset: record.offset, timestamp: record.timestamp) }
        if let next { count.pass(to: NextOffset(next)) }
        return count
    }

    @Test func `of a reader at the end is nothing`() {
        let nothing = count(7, 7, [])
        #expect(nothing.isDone)
        #expect(nothing.found == LagProbe.Found(lag: .exactly(0), timestamp: nil))
    }

    @Test func `counts records and not the ends of transactions`() {
        // 3 and 5 are records, 4 and 6 are ends of transactions.
        let counted = count(3, 7, [(3, 100), (5, 200)], next: 7)
        #expect(counted.isDone)
        #expect(counted.found == LagProbe.Found(lag: .exactly(2), timestamp: 100))
        #expect(count(3, 5, [], next: 5).found == LagProbe.Found(lag: .exactly(0), timestamp: nil))
        #expect(count(3, 5, [(5, 300)]).found == LagProbe.Found(lag: .exactly(0), timestamp: nil))
    }

    @Test func `of much is counted by offsets from the first record on, and says so`() {
        let limit = LagProbe.countLimit
        let much = count(0, limit + 1, [(4, 100)])
        #expect(much.isDone)
        #expect(much.found == LagProbe.Found(lag: .atMost(limit - 3), timestamp: 100))
        #expect(count(0, limit, [(4, 100)]).isDone == false)
        // Only ends of transactions, many of them.
        #expect(count(0, limit + 1, [], next: limit + 1).found.lag == .exactly(0))
    }

    @Test func `that could not be counted to the end is at most what is left`() {
        #expect(count(3, 9, [(5, 100), (6, 200)]).found == LagProbe.Found(lag: .atMost(4), timestamp: 100))
        #expect(count(3, 9, []).found == LagProbe.Found(lag: .atMost(6), timestamp: nil))
    }
}

@Suite struct `A group's report` {
    private static let now: Int64 = 1_771_000_000_000
    private static let group = GroupStanding(
        name: "readers", state: "Stable",
        members: [
            Admin.Member(
                clientID: "reader", instanceID: "readers.0-0", host: "/10.0.0.1",
                partitions: [TopicPartition("t", 0), TopicPartition("t", 1)])
        ],
        partitions: [
            PartitionStanding(
                partition: TopicPartition("t", 0), position: NextOffset(10),
                ends: PartitionEnds(beginning: NextOffset(0), committed: NextOffset(10), all: NextOffset(14)),
                lag: .exactly(0)),
            PartitionStanding(
                partition: TopicPartition("t", 1), position: NextOffset(5),
                ends: PartitionEnds(beginning: NextOffset(8), committed: NextOffset(5000), all: NextOffset(5000)),
                lag: .atMost(4990), nextTimestamp: now - 300_000),
            PartitionStanding(
                partition: TopicPartition("t", 2),
                ends: PartitionEnds(beginning: NextOffset(0), committed: NextOffset(3), all: NextOffset(3))),
            PartitionStanding(partition: TopicPartition("t", 3), position: NextOffset(1)),
        ])

    @Test func `has a row for each partition, with what is not known as a dash, and totals`() {
        let lines = GroupReport(Self.group, now: Self.now).textLines
        #expect(
            lines == [
                "group   readers  Stable", "member  readers.0-0  /10.0.0.1  partitions: 2",
                "TOPIC  PARTITION  POSITION  BEGINNING  END   HELD  LAG     BEHIND  MEMBER",
                "t      0          10        0          10    4     0       0 s     readers.0-0",
                "t      1          5         8          5000  0     <=4990  5 min   readers.0-0",
                "t      2          -         0          3     0     -       -       -",
                "t      3          1         -          -     -     -       -       -",
                "total   lag <=4990  behind 5 min  held back by open transactions: 4  partitions without a position: 1  "
                    + "partitions whose next record was deleted before it was read: 1",
            ])
    }

    @Test func `is the same for programs, one object a line`() {
        let lines = GroupReport(Self.group, now: Self.now).jsonLines
        #expect(lines.count == 5)
        #expect(
            lines[1] == #"{"kind":"partition","group":"readers","topic":"t","partition":1,"position":5,"beginning":8,"#
                + #""end":5000,"endOfAll":5000,"heldBack":0,"lag":4990,"lagIsExact":false,"#
                + #""nextTimestamp":1770999700000,"behindMilliseconds":300000,"recordsLost":true,"#
                + #""member":{"client":"reader","instance":"readers.0-0","host":"/10.0.0.1","partitions":2}}"#)
        #expect(
            lines[3] == #"{"kind":"partition","group":"readers","topic":"t","partition":3,"position":1,"#
                + #""beginning":null,"end":null,"endOfAll":null,"heldBack":null,"lag":null,"lagIsExact":false,"#
                + #""nextTimestamp":null,"behindMilliseconds":null,"recordsLost":false,"member":null}"#)
        #expect(
            lines[4] == #"{"kind":"group","group":"readers","state":"Stable","members":[{"client":"reader","#
                + #""instance":"readers.0-0","host":"/10.0.0.1","partitions":2}],"partitions":4,"withoutPosition":1,"#
                + #""heldBack":4,"lag":4990,"lagIsExact":false,"behindMilliseconds":300000}"#)
    }

    @Test(arguments: [
        (0, "0 s"), (119_999, "119 s"), (120_000, "2 min"), (7_199_000, "119 min"), (7_200_000, "2 h 0 min"),
        (172_799_000, "47 h 59 min"), (180_000_000, "2 d 2 h"),
    ])
    func `tells a time in the unit that fits`(milliseconds: Int64, words: String) {
        #expect(GroupReport.duration(milliseconds) == words)
    }
}

@Suite struct `A reset` {
    private let positions = [TopicPartition("t", 0): NextOffset(4), TopicPartition("t", 1): NextOffset(9)]
    private let ends = [
        TopicPartition("t", 0): PartitionEnds(beginning: NextOffset(2), committed: NextOffset(9), all: NextOffset(9)),
        TopicPartition("t", 1): PartitionEnds(beginning: NextOffset(0), committed: NextOffset(9), all: NextOffset(12)),
        TopicPartition("t", 2): PartitionEnds(beginning: NextOffset(0), committed: NextOffset(1), all: NextOffset(1)),
    ]

    /// Partition, from, to.
    private func changes(_ target: OffsetsQuery.Target) throws(ToolFault) -> [[Int64?]] {
        try OffsetsReset.changes(
            target, positions, ends,
            at: { time throws(ToolFault) in ends.mapValues { _ in NextOffset(time) } }
        ).map { [Int64($0.partition.partition), $0.from?.value, $0.to.value] }
    }

    @Test func `moves every partition of the topic, and not what is there already`() throws {
        #expect(try changes(.beginning) == [[0, 4, 2], [1, 9, 0], [2, nil, 0]])
        // The last stable offset: records of an open transaction are not skipped.
        #expect(try changes(.end) == [[0, 4, 9], [2, nil, 1]])
        #expect(try changes(.time(4)) == [[1, 9, 4], [2, nil, 4]])
        #expect(try changes(.offsets([1: 3, 0: 9])) == [[0, 4, 9], [1, 9, 3]])
    }

    @Test(arguments: [([0: 1], "from 2 to 9"), ([1: 10], "from 0 to 9"), ([7: 0], "no partition 7")])
    func `puts nobody where there is nothing`(offsets: [Int32: Int64], words: String) {
        let fault = #expect(throws: ToolFault.self) { try changes(.offsets(offsets)) }
        #expect(fault?.code == .wrongUsage)
        #expect(fault?.lines.first?.contains(words) == true, "\(fault?.lines ?? [])")
    }

    @Test func `is of all topics of the group or of the one that is named`() throws {
        let two = [TopicPartition("a", 0): NextOffset(1), TopicPartition("b", 0): NextOffset(1)]
        func reset(_ target: OffsetsQuery.Target, _ topic: String?) -> OffsetsQuery.Reset {
            OffsetsQuery.Reset(target: target, topic: topic, applies: true)
        }
        #expect(try OffsetsReset.topics(reset(.end, nil), of: two) == ["a", "b"])
        #expect(try OffsetsReset.topics(reset(.offsets([0: 0]), "b"), of: two) == ["b"])
        #expect(throws: ToolFault.self) { try OffsetsReset.topics(reset(.offsets([0: 0]), nil), of: two) }
        #expect(throws: ToolFault.self) { try OffsetsReset.topics(reset(.end, "c"), of: two) }
    }
}
