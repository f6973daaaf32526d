// Files that a service has read, and that may change while it runs.

public import Platform
import Synchronization
public import Telemetry

/// Calls a hook when one of the files is another than before: on a thread of its own, like `Reload`, which may be at it at the
/// same time. What cannot be used is tried again at each look, and told once: of two files the other one may come later.
public final class FileWatch: ServicePart {
    public let name = "files"
    private let part: ThreadPart

    /// - Parameters:
    ///   - files: asked before each look: what is read again may name others.
    ///   - reload: throws what is wrong with them.
    public init(
        _ files: @escaping @Sendable () -> [String], every interval: Duration = .seconds(1), logger: Logger,
        reload: @escaping @Sendable () throws -> Void
    ) {
        @Sendable func look() -> [String: FileStamp?] {
            Dictionary(files().map { ($0, FileStamp($0)) }, uniquingKeysWith: { first, _ in first })
        }
        // Before the thread: what changes from now on is seen.
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
                        "files of settings have changed and cannot be used; what was read before stays",
                        ["files": .string(changed), "reason": .string(told)])
                }
            }
        }
    }

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws { try part.start(failed: failed) }
    public func stop(by deadline: Deadline) throws { try part.stop(by: deadline) }
}
