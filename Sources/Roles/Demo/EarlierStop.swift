// Divides the time to stop among parts.

import Platform
import Service

/// A part with an earlier deadline to stop, because parts that stop after it need time, too.
struct EarlierStop: ServicePart {
    let part: any ServicePart
    let by: Duration

    var name: String { part.name }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws { try part.start(failed: failed) }

    func stop(by deadline: Deadline) throws { try part.stop(by: Deadline(after: deadline.remaining - by)) }
}
