// "Did you mean": the known name that takes the fewest slips of a finger.

/// The candidate with the smallest edit distance; of equals the first. nil only without candidates.
public func nearestName(to name: String, among candidates: [String]) -> String? {
    // Work grows with the product of the lengths; no known name is near this long.
    let name = Array(name.utf8.prefix(100))
    return candidates.min { editDistance(name, Array($0.utf8)) < editDistance(name, Array($1.utf8)) }
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
