// Which published items a customer may use: issues of a magazine, episodes of a podcast.

/// What a subscription unlocks.
public enum ContentScope: Sendable, Equatable {
    /// Everything published while the subscription ran, permanently.
    case archive
    /// Only what belongs to the current run.
    case current
}

extension [Run] {
    /// If there is access, the last run that has begun includes `now` even if its end has passed: during the leeway,
    /// while a renewal may be reported late, a customer with access may use the content. The number and order of runs
    /// stay.
    public func lasting(at now: Int64, hasAccess: Bool) -> [Run] {
        let begun = indices.filter { self[$0].start <= now }
        guard hasAccess, let last = begun.max(by: { self[$0].start < self[$1].start }), let end = self[last].end,
            end <= now
        else { return self }
        var runs = self
        runs[last].end = now == .max ? nil : now + 1
        return runs
    }

    /// The accessible ones of these publication dates, in the given order.
    ///
    /// An item is accessible if it was published during a run, or was the newest item when a run began: who subscribes
    /// in the middle of a month gets that month's issue at once. `published` must contain all dates, because the newest
    /// is chosen among them.
    public func accessible(_ published: [Int64], at now: Int64, scope: ContentScope = .archive) -> [Int64] {
        let open = filter { scope == .archive ? $0.start <= now : $0.contains(now) }
        let unlocked = Set(open.compactMap { run in published.lazy.filter { $0 <= run.start }.max() })
        return published.filter { item in unlocked.contains(item) || open.contains { $0.contains(item) } }
    }
}
