// Which published items a customer may use: a magazine's issues, a podcast's episodes.

/// What a subscription opens.
public enum ContentScope: Sendable, Equatable {
    /// Everything that was published while it ran, for good.
    case archive
    /// Only what belongs to the run that contains now.
    case current
}

extension [Run] {
    /// With access the last run that has begun contains now, also where its end has passed: while the word of a renewal is late
    /// (the leeway), who may use the product may use what it opens. In number and order as they are.
    public func lasting(at now: Int64, hasAccess: Bool) -> [Run] {
        let begun = indices.filter { self[$0].start <= now }
        guard hasAccess, let last = begun.max(by: { self[$0].start < self[$1].start }), let end = self[last].end,
            end <= now
        else { return self }
        var runs = self
        runs[last].end = now == .max ? nil : now + 1
        return runs
    }

    /// Of these dates of publication those that are accessible, in the order given.
    ///
    /// An item is if it was published in a run, or is the newest one there was when a run began: who subscribes in the middle of
    /// a month gets that month's issue at once. What is newest is told among these dates: they have to be all there are.
    public func accessible(_ published: [Int64], at now: Int64, scope: ContentScope = .archive) -> [Int64] {
        let open = filter { scope == .archive ? $0.start <= now : $0.contains(now) }
        let unlocked = Set(open.compactMap { run in published.lazy.filter { $0 <= run.start }.max() })
        return published.filter { item in unlocked.contains(item) || open.contains { $0.contains(item) } }
    }
}
