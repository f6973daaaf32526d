// Finds the known name that is most similar to a mistyped one.

/// The same name in another letter case, if there is one; otherwise the candidate with the smallest edit distance; of
/// equal ones the first. nil if none is similar: a guess without similarity would mislead the reader.
public func nearestName(to name: String, among candidates: [String]) -> String? {
    // The work grows with the product of the lengths; no similar known name is this long.
    let name = Array(name.utf8.prefix(100))
    if let same = candidates.first(where: { isSame(name, Array($0.utf8)) }) { return same }
    let measured = candidates.map { (candidate: $0, distance: editDistance(name, Array($0.utf8))) }
    guard let nearest = measured.min(by: { $0.distance < $1.distance }) else { return nil }
    // A word of any length can have two mistakes, only a long one more; a name of which half differs is another name.
    let length = max(name.count, nearest.candidate.utf8.count)
    let isNear = nearest.distance <= max(2, name.count / 3) && nearest.distance * 2 < length
    return isNear ? nearest.candidate : nil
}

/// Equal, ignoring the case of ASCII letters.
private func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    func small(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
    return left.count == right.count && zip(left, right).allSatisfy { small($0) == small($1) }
}

/// The number of insertions, deletions, replacements and swaps of neighbours that turn one into the other (optimal
/// string alignment).
func editDistance(_ from: [UInt8], _ to: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...to.count)
    for (i, a) in from.enumerated() {
        var row = [i + 1]
        for (j, b) in to.enumerated() {
            var best = min(last[j] + (a == b ? 0 : 1), last[j + 1] + 1, row[j] + 1)
            if i > 0, j > 0, a == to[j - 1], b == from[i - 1] { best = min(best, beforeLast[j - 1] + 1) }
            row.append(best)
        }
        (beforeLast, last) = (last, row)
    }
    return last[to.count]
}
