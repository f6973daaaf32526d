// Metrics of this process from the system, under their usual names.

import Glibc
import Platform

extension Metrics {
    /// Read from /proc at each request. A value that cannot be read is `NaN`.
    public func processInfo() {
        counter("process_cpu_seconds_total", help: "User and system processor time used, in seconds.") {
            ProcessStatus.read()?.cpuSeconds ?? .nan
        }
        gauge("process_resident_memory_bytes", help: "Resident memory in bytes.") {
            ProcessStatus.read()?.residentBytes ?? .nan
        }
        gauge("process_virtual_memory_bytes", help: "Virtual memory in bytes.") {
            ProcessStatus.read()?.virtualBytes ?? .nan
        }
        gauge("process_threads", help: "Threads of the process.") { ProcessStatus.read()?.threads ?? .nan }
        gauge("process_open_fds", help: "Open file descriptors.") { ProcessStatus.openDescriptors ?? .nan }
        gauge("process_max_fds", help: "Maximum number of open file descriptors.") {
            var limit = rlimit()
            return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? Double(limit.rlim_cur) : .nan
        }
        let start = ProcessStatus.read()?.startSeconds ?? .nan
        gauge("process_start_time_seconds", help: "Start time of the process, in seconds since 1970.") { start }
    }
}

/// /proc/self/stat.
struct ProcessStatus: Equatable {
    let cpuSeconds: Double
    let virtualBytes: Double
    let residentBytes: Double
    let threads: Double
    /// Since 1970.
    let startSeconds: Double

    private static let limitBytes = 1 << 20

    static func read() -> ProcessStatus? {
        guard let stat = try? readFile("/proc/self/stat", limitBytes: limitBytes),
            let system = try? readFile("/proc/stat", limitBytes: limitBytes)
        else { return nil }
        return ProcessStatus(
            stat: String(decoding: stat, as: UTF8.self), system: String(decoding: system, as: UTF8.self),
            ticksPerSecond: Double(sysconf(Int32(_SC_CLK_TCK))), pageBytes: Double(sysconf(Int32(_SC_PAGESIZE))))
    }

    /// nil: the texts are not these files.
    init?(stat: String, system: String, ticksPerSecond: Double, pageBytes: Double) {
        // The program's name may contain blanks and brackets, so it ends at the last bracket.
        guard let end = stat.lastIndex(of: ")"),
            let boot = system.split(separator: "\n").first(where: { $0.hasPrefix("btime ") })?.dropFirst(6),
            let bootSeconds = Double(boot)
        else { return nil }
        // From the third field on.
        let fields = stat[stat.index(after: end)...].split(separator: " ").map { Double($0) }
        func field(_ number: Int) -> Double? { number - 3 < fields.count ? fields[number - 3] : nil }
        guard let user = field(14), let kernel = field(15), let threads = field(20), let start = field(22),
            let virtual = field(23), let pages = field(24)
        else { return nil }
        cpuSeconds = (user + kernel) / ticksPerSecond
        virtualBytes = virtual
        residentBytes = pages * pageBytes
        self.threads = threads
        startSeconds = bootSeconds + start / ticksPerSecond
    }

    static var openDescriptors: Double? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // The two entries that every directory has, and the descriptor that reads the directory.
        return Double(count - 3)
    }
}
