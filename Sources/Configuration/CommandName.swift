// Every command of the contract: those that are, those to come, and those whose names are kept.

public enum CommandName: String, Sendable, CaseIterable {
    case ingest, entitlements, churn, consumption, api, clock
    case backfill, replay, diff, promote
    case offsets, topics
    case deadLetters = "dead-letters"
    case inspect, usage, verify, check, simulate, demo
    case version, help
    case standalone, copy, sink, offer, erase
}

extension [CommandName] {
    static let workers: [CommandName] = [.entitlements, .churn, .consumption]
    /// Run a worker, live or in the shadow.
    static let runWorkers: [CommandName] = workers + [.replay]
    /// Verify what Apple signed.
    static let verifiers: [CommandName] = [.ingest, .backfill, .verify, .deadLetters]
    /// Stay up, with health and metrics.
    static let services: [CommandName] = [.ingest] + workers + [.api, .clock]
    /// Read or write records of the topics.
    static let onTopics: [CommandName] =
        [.ingest] + workers + [.api, .clock, .backfill, .replay, .diff, .promote]
        + [.offsets, .topics, .deadLetters, .inspect, .usage]
}
