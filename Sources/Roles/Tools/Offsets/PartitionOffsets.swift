// Offsets of partitions, as people write them.

import Cluster
import Platform

/// Reads `PARTITION:OFFSET[,...]`; nil: the text has another form.
func partitionOffsets(_ text: String, option: String) throws(ToolFault) -> [Int32: Int64]? {
    var offsets: [Int32: Int64] = [:]
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
        let numbers = part.split(separator: ":", omittingEmptySubsequences: false)
        guard numbers.count == 2, let partition = Int32(numbers[0]), let offset = Int64(numbers[1]), partition >= 0,
            offset >= 0
        else { return nil }
        guard offsets.updateValue(offset, forKey: partition) == nil else {
            throw ToolFault(.wrongUsage, "--\(option) names partition \(partition) twice")
        }
    }
    return offsets
}
