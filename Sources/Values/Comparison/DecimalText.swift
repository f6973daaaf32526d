// Numbers in JSON notation, compared by value.

/// `1`, `1.0` and `10e-1` are equal. Nothing is rounded: all of 40 digits count.
struct DecimalText: Equatable {
    private var isNegative = false
    /// Without zeros at either end; empty for zero.
    private var digits: [UInt8] = []
    /// The number is 0.digits times ten to this power.
    private var power: Int = 0

    /// nil: the exponent is too large to be meaningful.
    ///
    /// - Parameter text: a number that a JSON parser has accepted.
    init?(_ text: String) {
        var isFraction = false
        var rest = text.utf8[...]
        if rest.first == UInt8(ascii: "-") {
            isNegative = true
            rest.removeFirst()
        }
        while let byte = rest.first {
            rest.removeFirst()
            switch byte {
            case UInt8(ascii: "."): isFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                if rest.first == UInt8(ascii: "+") { rest.removeFirst() }
                guard let exponent = Int(Substring(rest)), exponent.magnitude < 1 << 40 else { return nil }
                power += exponent
                rest = rest[rest.endIndex...]
            default:
                digits.append(byte)
                if !isFraction { power += 1 }
            }
        }
        let zero = UInt8(ascii: "0")
        let leading = digits.prefix { $0 == zero }.count
        digits.removeFirst(leading)
        power -= leading
        while digits.last == zero { digits.removeLast() }
        if digits.isEmpty { (isNegative, power) = (false, 0) }
    }
}
