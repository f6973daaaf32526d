// Which published items a customer may use: a magazine's issues, a podcast's episodes.

/// What a subscription opens.
public enum ContentScope: Sendable, Equatable {
    /// Everything that was published while it ran, for good.
    case archive
    /// Only what belongs to the run that contains now.
    case current
}

extension [Run] {
    /// Of these dates of publication those that are accessible, in the order given.
    ///
    /// An item is if it was published in a run, or is the newest one there was when a run began: who subscribes in the middle of
    /// a month gets that month's issue at once.
    public func accessible(_ published: [Int64], at now: Int64, scope: ContentScope = .archive) -> [Int64] {
        let open = filter { scope == .archive ? $0.start <= now : $0.contains(now) }
        let unlocked = Set(open.compactMap { run in published.lazy.filter { $0 <= run.start }.max() })
        return published.filter { item in unlocked.contains(item) || open.contains { $0.contains(item) } }
    }
}
