// Text that fits the width of a terminal.

/// Breaks lines between words. A word that is longer than a line is broken, too: behind a sign within it, if there is one
/// in the second half of the line, so that the parts of a product's name stay whole.
///
/// - Parameter hanging: the indent of all lines but the first.
package func wrapped(_ text: String, width: Int, hanging: Int = 0) -> [String] {
    let indent = String(repeating: " ", count: hanging)
    var lines: [String] = []
    var line: String?
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
        if let begun = line, begun.count + 1 + word.count <= width {
            line = begun + " " + word
            continue
        }
        if let begun = line { lines.append(begun) }
        var pieces = pieces(of: word, length: max(1, width - hanging))
        let last = pieces.removeLast()
        for piece in pieces { lines.append((lines.isEmpty ? "" : indent) + piece) }
        line = (lines.isEmpty ? "" : indent) + last
    }
    return lines + [line ?? ""]
}

/// At least one.
private func pieces(of word: Substring, length: Int) -> [Substring] {
    var pieces: [Substring] = []
    var rest = word
    while rest.count > length {
        let most = rest.prefix(length)
        let sign = most.dropFirst(length / 2).lastIndex { !$0.isLetter && !$0.isNumber }
        let piece = sign.map { most[...$0] } ?? most
        pieces.append(piece)
        rest = rest[piece.endIndex...]
    }
    return pieces + [rest]
}
