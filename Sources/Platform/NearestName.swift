// "Did you mean": the known name that takes the fewest slips of a finger.

/// The same name in other letters, large or small, if there is one; else the candidate with the smallest edit distance; of equals
/// the first. nil when none is near: a guess that shares nothing
/// with what was written sends its reader off the track.
public func nearestName(to name: String, among candidates: [String]) -> String? {
    // Work grows with the product of the lengths; no known name is near this long.
    let name = Array(name.utf8.prefix(100))
    if let same = candidates.first(where: { isSame(name, Array($0.utf8)) }) { return same }
    let measured = candidates.map { (candidate: $0, distance: editDistance(name, Array($0.utf8))) }
    guard let nearest = measured.min(by: { $0.distance < $1.distance }) else { return nil }
    // Two slips happen in a word of any length, more only in a long one; a name that is half slips is another name.
    let length = max(name.count, nearest.candidate.utf8.count)
    let isNear = nearest.distance <= max(2, name.count / 3) && nearest.distance * 2 < length
    return isNear ? nearest.candidate : nil
}

/// But for the case of ASCII letters.
private func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    func small(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
    return left.count == right.count && zip(left, right).allSatisfy { small($0) == small($1) }
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one into the other (optimal string alignment).
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
