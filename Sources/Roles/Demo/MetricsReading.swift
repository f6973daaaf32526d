// Figures from a page of metrics, as anybody who scrapes it has them.

struct MetricsReading {
    private let lines: [Substring]

    init(_ exposition: [UInt8]) {
        lines = String(decoding: exposition, as: UTF8.self).split(separator: "\n")
    }

    /// Over all labels; nil: there is no such series yet.
    func sum(of name: String) -> Double? {
        let values = lines.compactMap { line -> Double? in
            guard line.hasPrefix(name), let next = line.dropFirst(name.count).first, next == "{" || next == " " else {
                return nil
            }
            return line.split(separator: " ").last.flatMap { Double($0) }
        }
        return values.isEmpty ? nil : values.reduce(0, +)
    }
}
