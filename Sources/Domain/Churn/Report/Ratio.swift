// Exact ratios.

public struct Ratio: Sendable, Equatable {
    public let numerator: Int64
    public let denominator: Int64

    public init(_ numerator: Int64, of denominator: Int64) {
        self.numerator = numerator
        self.denominator = denominator
    }

    /// The value with this number of decimal places, rounded once, half to even. nil if the denominator is zero.
    ///
    /// - Parameter scale: 100 for percent.
    public func decimal(digits: Int, times scale: Int64 = 1) -> String? {
        guard denominator != 0 else { return nil }
        let unit = (0..<digits).reduce(Int128(1)) { power, _ in power * 10 }
        let product = Int128(numerator) * Int128(scale) * unit
        let divisor = Int128(denominator)
        var quotient = product.magnitude / divisor.magnitude
        let twice = product.magnitude % divisor.magnitude * 2
        if twice > divisor.magnitude || twice == divisor.magnitude && quotient % 2 != 0 { quotient += 1 }
        let isNegative = quotient != 0 && (product < 0) != (divisor < 0)
        let digitsOfAll = String(quotient)
        let padded = String(repeating: "0", count: max(digits + 1 - digitsOfAll.utf8.count, 0)) + digitsOfAll
        let whole = padded.dropLast(digits)
        return (isNegative ? "-" : "") + whole + (digits > 0 ? "." + padded.suffix(digits) : "")
    }
}
