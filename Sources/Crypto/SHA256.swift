// SHA-256, and bytes as hexadecimal text.

public enum SHA256 {
    public static func digest(_ bytes: Span<UInt8>) -> [UInt8] { fatalError("to be written") }
}

/// Lower case.
public func hexadecimal(_ bytes: [UInt8]) -> String { fatalError("to be written") }
