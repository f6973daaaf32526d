// Every command of the contract: existing ones, planned ones, and reserved names.

public enum CommandName: String, Sendable, CaseIterable {
    case ingest, entitlements, churn, consumption, api, clock
    case backfill, replay, diff, promote
    case offsets, topics
    case deadLetters = "dead-letters"
    case inspect, usage, verify, check, size, simulate, demo
    case version, help
    case standalone, copy, sink, offer, erase

    /// The roles that `perennial check` knows.
    package static let roles: [CommandName] = [.ingest, .clock, .entitlements, .churn, .consumption, .api]

    /// nil: there is no role with this name.
    package static func role(named name: String) -> CommandName? {
        CommandName(rawValue: name).flatMap { roles.contains($0) ? $0 : nil }
    }
}

extension [CommandName] {
    static let workers: [CommandName] = [.entitlements, .churn, .consumption]
    /// Commands that run a worker, live or as a shadow.
    static let runWorkers: [CommandName] = workers + [.replay]
    /// Commands that verify what Apple signed.
    static let verifiers: [CommandName] = [.ingest, .backfill, .verify, .deadLetters]
    /// Commands that keep running, with health and metrics.
    static let services: [CommandName] = [.ingest] + workers + [.api, .clock]
    /// Commands that read or write records of the topics.
    static let onTopics: [CommandName] =
        [.ingest] + workers + [.api, .clock, .backfill, .replay, .diff, .promote]
        + [.offsets, .topics, .deadLetters, .inspect, .usage]
}
