import Kafka
import Testing

@testable import Cluster

struct `Records without an acknowledgement` {
    private static func record(_ name: Int) -> ToolRecord {
        ToolRecord(
            topic: "t", partition: 0, key: [UInt8(name)], value: nil, headers: [], timestamp: Int64(name))
    }

    @Test func `are sent again with all that followed the one that was lost, in their order`() {
        var records = Unacknowledged()
        let numbers = (0..<5).map { records.add(Self.record($0)) }
        records.note(nil, of: numbers[0])
        records.note(.unconfirmed, of: numbers[1])
        records.note(nil, of: numbers[2])
        records.note(.purgedInQueue, of: numbers[3])
        #expect(records.failure == .unconfirmed)
        #expect(records.written == 1)
        let again = records.again()
        #expect(again.map(\.value) == [1, 2, 3, 4].map(Self.record))

        #expect(records.failure == nil)
        for (number, _) in again { records.note(nil, of: number) }
        #expect(records.written == 5)
        #expect(records.again().isEmpty)
    }
}
