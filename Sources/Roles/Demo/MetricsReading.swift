// Reads figures from the text of a metrics page.

import Contract

struct MetricsReading {
    private let lines: [Substring]

    init(_ exposition: [UInt8]) {
        lines = String(decoding: exposition, as: UTF8.self).split(separator: "\n")
    }

    /// Records that a worker has not processed; nil: the number is not known yet.
    func lag(of worker: WorkerName) -> Int? {
        sum(of: "perennial_lag_records", where: "worker=\"\(worker.rawValue)\"").map { Int($0) }
    }

    /// The sum of all series with the label, as the page writes it; nil: there is no series yet.
    func sum(of name: String, where label: String = "") -> Double? {
        let values = lines.compactMap { line -> Double? in
            guard line.hasPrefix(name), let next = line.dropFirst(name.count).first, next == "{" || next == " ",
                label.isEmpty || line.contains(label)
            else { return nil }
            return line.split(separator: " ").last.flatMap { Double($0) }
        }
        return values.isEmpty ? nil : values.reduce(0, +)
    }
}
