// Computes the partition of a key.

/// murmur2 of the key's bytes, as the default partitioner of the Java client.
///
/// Computed here and passed explicitly, because clients have different defaults (librdkafka's is CRC32), and one key in
/// two partitions would have two writers.
public enum Partitioner {
    public static func partition(of key: Span<UInt8>, count: Int32) -> Int32 {
        precondition(count > 0, "a topic has at least one partition")
        return Int32(bitPattern: murmur2(key) & 0x7fff_ffff) % count
    }

    public static func partition(of key: [UInt8], count: Int32) -> Int32 {
        partition(of: key.span, count: count)
    }

    static func murmur2(_ key: Span<UInt8>) -> UInt32 {
        let mixer: UInt32 = 0x5bd1_e995
        var hash: UInt32 = 0x9747_b28c ^ UInt32(truncatingIfNeeded: key.count)
        var index = 0
        while index + 4 <= key.count {
            var word =
                UInt32(key[index]) | UInt32(key[index + 1]) << 8 | UInt32(key[index + 2]) << 16
                | UInt32(key[index + 3]) << 24
            word = word &* mixer
            word ^= word >> 24
            word = word &* mixer
            hash = hash &* mixer ^ word
            index += 4
        }
        if index < key.count {
            for rest in stride(from: key.count - 1, through: index, by: -1) {
                hash ^= UInt32(key[rest]) << UInt32(8 * (rest - index))
            }
            hash = hash &* mixer
        }
        hash ^= hash >> 13
        hash = hash &* mixer
        hash ^= hash >> 15
        return hash
    }
}
