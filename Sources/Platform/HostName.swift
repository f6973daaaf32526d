// What this machine, or container, is called.

import Glibc

public enum HostName {
    /// Empty when the system does not say.
    public static var current: String {
        var name = [CChar](repeating: 0, count: 256)
        // The last byte stays 0: a name that is cut off need not be ended by the call.
        guard gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
