// Watches files that a service has read and that may change while it runs.

public import Platform
import Synchronization
public import Telemetry

/// Calls a hook when one of the files has changed: on its own thread, like `Reload`, which may run at the same time. If
/// a file cannot be used, the hook is called again at each check, and the fault is logged once: the other one of two
/// files may follow later.
public final class FileWatch: ServicePart {
    public let name = "files"
    private let part: ThreadPart

    /// - Parameters:
    /// - files: called before each check, because a reload may change the list of files.
    /// - reload: throws the fault of the files.
    public init(
        _ files: @escaping @Sendable () -> [String], every interval: Duration = .seconds(1), logger: Logger,
        reload: @escaping @Sendable () throws -> Void
    ) {
        @Sendable func look() -> [String: FileStamp?] {
            Dictionary(files().map { ($0, FileStamp($0)) }, uniquingKeysWith: { first, _ in first })
        }
        // Before the thread starts, so that later changes are noticed.
        let first = look()
        part = ThreadPart("files") { stop in
            var (known, told) = (first, "")
            while !stop.wait(for: interval) {
                let now = look()
                guard now != known else { continue }
                do {
                    try reload()
                    (known, told) = (now, "")
                } catch {
                    let changed = now.filter { known[$0.key] != $0.value }.keys.sorted().joined(separator: ", ")
                    guard told != "\(error)" else { continue }
                    told = "\(error)"
                    logger.error(
                        "changed files of settings cannot be used; the previous contents stay in use",
                        ["files": .string(changed), "reason": .string(told)])
                }
            }
        }
    }

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws { try part.start(failed: failed) }
    public func stop(by deadline: Deadline) throws { try part.stop(by: deadline) }
}
