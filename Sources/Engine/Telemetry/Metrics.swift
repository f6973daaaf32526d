// The registry of metrics and their text for Prometheus (format 0.0.4).

import Synchronization

/// Metrics of a process: created once at start, updated all the time, rendered on request.
///
/// The same name and labels give the same object again. A name or label that Prometheus would refuse, or one name with
/// two types, is a bug in the program and traps.
public final class Metrics: Sendable {
    private enum Sample {
        case counter(Counter)
        case gauge(Gauge)
        case histogram(Histogram)
        case reading(type: String, @Sendable () -> Double)

        var type: String {
            switch self {
            case .counter: "counter"
            case .gauge: "gauge"
            case .reading(let type, _): type
            case .histogram: "histogram"
            }
        }
    }

    private struct Family {
        let help: String
        let type: String
        let labelNames: [String]
        /// By the rendered labels.
        var series: [String: Sample] = [:]
    }

    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private let families = Mutex<[String: Family]>([:])
    private let common: [(key: String, value: String)]

    /// - Parameter common: labels that every series gets unless it has them itself.
    public init(common: KeyValuePairs<String, String> = [:]) {
        self.common = common.map { ($0.key, $0.value) }
    }

    /// `name` ends in `_total`. Label values must be from closed sets: each pair of values is a time series forever.
    public func counter(
        _ name: String, help: String, labels: KeyValuePairs<String, String> = [:]
    ) -> Counter {
        precondition(name.hasSuffix("_total"), "the name of a counter ends in _total: \(name)")
        let sample = register(name, help, labels, type: "counter") { .counter(Counter()) }
        guard case .counter(let counter) = sample else { preconditionFailure("\(name) is not a counter") }
        return counter
    }

    public func gauge(_ name: String, help: String, labels: KeyValuePairs<String, String> = [:]) -> Gauge {
        let sample = register(name, help, labels, type: "gauge") { .gauge(Gauge()) }
        guard case .gauge(let gauge) = sample else {
            preconditionFailure(
                "\(name) is read by a closure and cannot be set")
        }
        return gauge
    }

    /// A gauge that is read on the thread that renders; `read` must be short and must not block.
    public func gauge(
        _ name: String, help: String, labels: KeyValuePairs<String, String> = [:],
        read: @escaping @Sendable () -> Double
    ) {
        add(name, help, labels, type: "gauge", read)
    }

    /// A counter whose value `read` returns, with the same rules. It must never fall.
    public func counter(
        _ name: String, help: String, labels: KeyValuePairs<String, String> = [:],
        read: @escaping @Sendable () -> Double
    ) {
        add(name, help, labels, type: "counter", read)
    }

    private func add(
        _ name: String, _ help: String, _ labels: KeyValuePairs<String, String>, type: String,
        _ read: @escaping @Sendable () -> Double
    ) {
        var isNew = false
        register(name, help, labels, type: type) {
            isNew = true
            return .reading(type: type, read)
        }
        precondition(isNew, "\(name) already exists with another source")
    }

    /// `bounds` are the upper bounds of the buckets, rising; the bucket without a bound is added.
    public func histogram(
        _ name: String, help: String, bounds: [Double], labels: KeyValuePairs<String, String> = [:]
    ) -> Histogram {
        let sample = register(name, help, labels, type: "histogram") { .histogram(Histogram(bounds: bounds)) }
        guard case .histogram(let histogram) = sample else { preconditionFailure("\(name) is not a histogram") }
        precondition(histogram.bounds == bounds, "\(name) already exists with other bounds")
        return histogram
    }

    /// The version of the program as a label of a constant 1, as is usual for Prometheus.
    public func buildInfo(version: String) {
        gauge("perennial_build_info", help: "Constant 1; the version is in the label.", labels: ["version": version])
            .set(1)
    }

    @discardableResult
    private func register(
        _ name: String, _ help: String, _ labels: KeyValuePairs<String, String>, type: String, make: () -> Sample
    ) -> Sample {
        checkMetricName(name)
        let own = labels.map { (key: $0.key, value: $0.value) }
        let labels = common.filter { common in !own.contains { $0.key == common.key } } + own
        let rendered = renderLabels(labels, of: name)
        return families.withLock { families in
            let labelNames = labels.map(\.key)
            var family = families[name] ?? Family(help: help, type: type, labelNames: labelNames)
            precondition(family.type == type, "\(name) is a \(family.type), not a \(type)")
            precondition(
                family.labelNames == labelNames, "\(name) has the labels \(family.labelNames), not \(labelNames)")
            precondition(family.help == help, "\(name) already exists with another help text")
            let sample = family.series[rendered] ?? make()
            family.series[rendered] = sample
            families[name] = family
            return sample
        }
    }

    /// The exposition: families by name, series by label text, so that two expositions differ only in values.
    public func exposition() -> [UInt8] {
        let copy = families.withLock { $0 }
        var text = ""
        for (name, family) in copy.sorted(by: { $0.key < $1.key }) {
            text += "# HELP \(name) \(escapeHelp(family.help))\n# TYPE \(name) \(family.type)\n"
            for (labels, sample) in family.series.sorted(by: { $0.key < $1.key }) {
                switch sample {
                case .counter(let counter): text += "\(name)\(braces(labels)) \(counter.value)\n"
                case .gauge(let gauge): text += "\(name)\(braces(labels)) \(render(gauge.value))\n"
                case .reading(_, let read): text += "\(name)\(braces(labels)) \(render(read()))\n"
                case .histogram(let histogram): text += self.text(of: histogram, name, labels)
                }
            }
        }
        return Array(text.utf8)
    }

    private func text(of histogram: Histogram, _ name: String, _ labels: String) -> String {
        let reading = histogram.reading()
        let before = labels.isEmpty ? "" : labels + ","
        var text = ""
        var total: UInt64 = 0
        for (bound, count) in zip(histogram.bounds + [.infinity], reading.counts) {
            total += count
            text += "\(name)_bucket{\(before)le=\"\(render(bound))\"} \(total)\n"
        }
        text += "\(name)_sum\(braces(labels)) \(render(reading.sum))\n"
        // The sum of the buckets, not a separate counter: the two could differ during an update.
        text += "\(name)_count\(braces(labels)) \(total)\n"
        return text
    }
}

private func braces(_ labels: String) -> String { labels.isEmpty ? "" : "{\(labels)}" }

private func checkMetricName(_ name: String) {
    // Process metrics have the same names everywhere.
    precondition(
        name.hasPrefix("perennial_") || name.hasPrefix("process_"),
        "the name of a metric must begin with perennial_: \(name)")
    precondition(isIdentifier(name), "not a name of a metric: \(name)")
    for ending in ["_bucket", "_sum", "_count"] {
        precondition(!name.hasSuffix(ending), "\(ending) belongs to histograms: \(name)")
    }
}

private func renderLabels(_ labels: [(key: String, value: String)], of metric: String) -> String {
    var seen: Set<String> = []
    return labels.map { name, value in
        precondition(isIdentifier(name) && !name.hasPrefix("__") && name != "le", "not a label of \(metric): \(name)")
        precondition(seen.insert(name).inserted, "\(metric) has the label \(name) twice")
        return "\(name)=\"\(escapeLabelValue(value))\""
    }.joined(separator: ",")
}

/// `[a-zA-Z_][a-zA-Z0-9_]*`; the colon is reserved for recording rules.
private func isIdentifier(_ text: String) -> Bool {
    guard let first = text.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return false }
    return text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

private func escapeLabelValue(_ text: String) -> String { escape(text, quotes: true) }
private func escapeHelp(_ text: String) -> String { escape(text, quotes: false) }

/// By scalars, not characters: Swift treats CR LF as one character, and its line feed would end the sample.
private func escape(_ text: String, quotes: Bool) -> String {
    var escaped = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\\": escaped.append(contentsOf: "\\\\".unicodeScalars)
        case "\n": escaped.append(contentsOf: "\\n".unicodeScalars)
        case "\"" where quotes: escaped.append(contentsOf: "\\\"".unicodeScalars)
        default: escaped.append(scalar)
        }
    }
    return String(escaped)
}

private func render(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    // 1 instead of 1.0, as Prometheus writes bounds; beyond 2^53 a Double cannot represent odd numbers.
    if value == value.rounded(), value.magnitude < 9e15 { return String(Int64(value)) }
    return "\(value)"
}
