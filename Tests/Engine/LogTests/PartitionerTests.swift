import Testing

@testable import Log

@Suite struct `The partition of a key` {
    /// The test vectors of Apache Kafka's own UtilsTest.testMurmur2.
    @Test(arguments: [
        ("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ("abc", 479_470_107),
    ])
    func `is Java's murmur2`(text: String, hash: Int) {
        #expect(Int(Int32(bitPattern: Partitioner.murmur2(Array(text.utf8).span))) == hash)
    }

    @Test func `is never negative and below the count`() {
        for number in 0..<5_000 {
            for count: Int32 in [1, 2, 12, 37] {
                let partition = Partitioner.partition(of: Array(String(number).utf8), count: count)
                #expect((0..<count).contains(partition))
            }
        }
    }

    @Test func `exists for an empty key`() {
        #expect(Partitioner.partition(of: [], count: 12) == 275_646_681 % 12)
    }
}

@Suite struct `A position` {
    @Test func `is one beyond the record that was dealt with`() {
        #expect(NextOffset(after: 41) == NextOffset(42))
    }
}
