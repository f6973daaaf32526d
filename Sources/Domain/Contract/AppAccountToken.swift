// The token with which an app identifies its customer's account.

public enum AppAccountToken {
    /// In lower case, as in the keys of records; nil if it is not 8-4-4-4-12 hexadecimal digits, which Apple sends in
    /// either case.
    public static func canonical(_ bytes: [UInt8]) -> String? {
        guard bytes.count == 36 else { return nil }
        var lower: [UInt8] = []
        lower.reserveCapacity(36)
        for (index, byte) in bytes.enumerated() {
            let isBar = index == 8 || index == 13 || index == 18 || index == 23
            guard isBar == (byte == UInt8(ascii: "-")) else { return nil }
            switch byte {
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"):
                lower.append(byte)
            case UInt8(ascii: "A")...UInt8(ascii: "F"): lower.append(byte | 0x20)
            default: return nil
            }
        }
        return String(decoding: lower, as: UTF8.self)
    }
}
