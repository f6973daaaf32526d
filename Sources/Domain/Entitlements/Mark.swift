// Stands for texts of which only a change matters.

import SubscriptionHistory

/// FNV-1a.
struct Mark: BitwiseCopyable, Equatable {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    init() {}
    init(value: UInt64) { self.value = value }

    mutating func add(_ text: UnsafeBufferPointer<UInt8>?) {
        guard let text else { return addNone() }
        add(1)
        for byte in text { add(byte) }
        end()
    }

    mutating func add(_ text: String) {
        add(1)
        for byte in text.utf8 { add(byte) }
        end()
    }

    mutating func addNone() {
        add(0)
        end()
    }

    /// 0xff occurs in no text, so it separates texts.
    private mutating func end() { add(0xff) }

    private mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
}
