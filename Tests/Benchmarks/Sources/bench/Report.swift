// Figures and verdicts, in the form that people and Tests/nightly.sh read.

import Platform

struct Report {
    /// The required bound of a ratio.
    enum Bound {
        case atLeast(Double)
        case atMost(Double)

        func holds(for ratio: Double) -> Bool {
            switch self {
            case .atLeast(let bound): ratio >= bound
            case .atMost(let bound): ratio <= bound
            }
        }

        var words: String {
            switch self {
            case .atLeast(let bound): "at least \(decimals(bound))"
            case .atMost(let bound): "at most \(decimals(bound))"
            }
        }
    }

    private(set) var isAllMet = true

    /// Prints two lines: `  WHAT: figures`, and the verdict that Tests/nightly.sh keeps.
    mutating func judge(_ what: String, _ figures: String, ratio: Double, _ bound: Bound) {
        let isMet = bound.holds(for: ratio)
        isAllMet = isAllMet && isMet
        printData("  \(what): \(figures)")
        printData("    ratio \(decimals(ratio)), \(bound.words): \(isMet ? "met" : "NOT MET")")
    }

    func note(_ words: String) { printData("  \(words)") }

    /// Reports a failure that is not a ratio.
    mutating func fail(_ words: String) {
        isAllMet = false
        printData("  \(words): NOT MET")
    }
}

/// The median; the upper of the two middle values if their number is even.
func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

/// Median, minimum and maximum.
func figures(_ values: [Double]) -> String {
    "\(decimals(median(values))) [\(decimals(values.min()!))-\(decimals(values.max()!))]"
}

/// Two decimals below a hundred, no decimals above.
func decimals(_ value: Double) -> String {
    if value >= 100 { return "\(Int(value.rounded()))" }
    let hundredths = Int((value * 100).rounded())
    return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
}
