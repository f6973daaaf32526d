// The name of this machine or container.

import Glibc

public enum HostName {
    /// Empty if the system does not provide it.
    public static var current: String {
        var name = [CChar](repeating: 0, count: 256)
        // The last byte stays 0: the call need not terminate a truncated name.
        guard gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
