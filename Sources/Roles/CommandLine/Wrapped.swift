// Text that fits the width of a terminal.

/// Breaks lines between words. A word that is longer than a line is broken, too.
///
/// - Parameter hanging: the indent of all lines but the first.
package func wrapped(_ text: String, width: Int, hanging: Int = 0) -> [String] {
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
        .flatMap { pieces(of: $0, length: width - hanging) }
    var lines: [String] = []
    var line = words.first.map(String.init) ?? ""
    for word in words.dropFirst() {
        if line.count + 1 + word.count <= width {
            line += " " + word
        } else {
            lines.append(line)
            line = String(repeating: " ", count: hanging) + word
        }
    }
    return lines + [line]
}

private func pieces(of word: Substring, length: Int) -> [Substring] {
    guard word.count > length else { return [word] }
    return [word.prefix(length)] + pieces(of: word.dropFirst(length), length: length)
}
