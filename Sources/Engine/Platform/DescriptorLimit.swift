// The number of files and sockets that this process may open.

import Glibc

public enum DescriptorLimit {
    /// Raises the soft limit towards `wanted`, as far as the hard limit allows, and returns the resulting limit. Most
    /// systems start with a soft limit of 1,024, which is for programs that use `select`.
    public static func raise(to wanted: Int) -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return wanted }
        let aim = min(rlim_t(wanted), limit.rlim_max)
        if limit.rlim_cur < aim {
            let before = limit.rlim_cur
            limit.rlim_cur = aim
            if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 { limit.rlim_cur = before }
        }
        return Int(clamping: limit.rlim_cur)
    }
}
