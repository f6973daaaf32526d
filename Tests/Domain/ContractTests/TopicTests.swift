import Testing

@testable import Contract

private let names = Names(prefix: TopicPrefix("appstore")!, environment: .production)
private let plan = TopicPlan(
    prefix: TopicPrefix("appstore")!, partitions: 12, replicationFactor: 3, minimumInSyncReplicas: 2)

private func setting(_ name: String, of id: TopicID) -> String? {
    let found = plan.settings(of: TopicCatalogue.definition(id)).filter { $0.name == name }
    return found.count == 1 ? found[0].value : nil
}

@Suite struct `The topic catalogue` {
    @Test func `has every topic of the contract, once`() {
        #expect(
            plan.topics(in: .production).map(\.name) == [
                "appstore.production.notifications", "appstore.production.signed", "appstore.production.rejected",
                "appstore.production.usage", "appstore.production.entitlements",
                "appstore.production.entitlement-events", "appstore.production.accounts",
                "appstore.production.churn-cells", "appstore.production.churn-events",
                "appstore.production.consumption", "appstore.production.consumption-attempts",
                "appstore.production.entitlements.changelog", "appstore.production.entitlements.dead-letters",
                "appstore.production.churn.changelog", "appstore.production.churn.dead-letters",
                "appstore.production.consumption.changelog", "appstore.production.consumption.dead-letters",
            ])
        #expect(Set(TopicID.allCases) == Set(TopicCatalogue.definitions.map(\.id)))
        #expect(TopicID.allCases.count == TopicCatalogue.definitions.count)
        #expect(plan.topics(in: .sandbox).allSatisfy { $0.name.hasPrefix("appstore.sandbox.") })
    }

    @Test(arguments: [
        (TopicID.notifications, "delete", "-1" as String?), (.signed, "delete", "34560000000"),
        (.rejected, "delete", "7776000000"),
        (.entitlements, "compact", nil), (.entitlementEvents, "delete", "34560000000"), (.accounts, "compact", nil),
        (.churnCells, "compact", nil), (.churnEvents, "delete", "34560000000"), (.usage, "delete", "34560000000"),
        (.consumption, "delete", "34560000000"), (.consumptionAttempts, "delete", "34560000000"),
        (.changelog(.churn), "compact", nil),
        (.deadLetters(.churn), "delete", "7776000000"),
    ])
    func `keeps records as long as the contract says`(_ id: TopicID, _ policy: String, _ retention: String?) {
        #expect(setting("cleanup.policy", of: id) == policy)
        #expect(setting("retention.ms", of: id) == retention)
        #expect(setting("retention.bytes", of: id) == (policy == "delete" ? "-1" : nil))
    }

    @Test func `takes the writer's time but for what was refused`() {
        for id in TopicID.allCases {
            let isRefused = id == .rejected || id.name.hasSuffix(".dead-letters")
            #expect(setting("message.timestamp.type", of: id) == (isRefused ? "LogAppendTime" : "CreateTime"))
            #expect(setting("message.timestamp.before.max.ms", of: id) == (isRefused ? nil : "9223372036854775807"))
        }
    }

    @Test func `lets no clock that runs ahead into notifications`() {
        #expect(setting("message.timestamp.after.max.ms", of: .notifications) == "60000")
    }

    @Test func `compresses signed payloads`() {
        #expect(TopicID.allCases.filter { setting("compression.type", of: $0) != nil } == [.signed])
        #expect(setting("compression.type", of: .signed) == "zstd")
    }

    @Test func `keeps changelogs short to restore and deletions long enough to be seen`() {
        #expect(setting("min.compaction.lag.ms", of: .changelog(.entitlements)) == "3600000")
        #expect(setting("segment.bytes", of: .changelog(.entitlements)) == "67108864")
        #expect(setting("min.compaction.lag.ms", of: .entitlements) == nil)
        for id in TopicID.allCases where setting("cleanup.policy", of: id) == "compact" {
            #expect(setting("delete.retention.ms", of: id) == "604800000")
        }
    }

    @Test func `guards every topic against losing what was acknowledged`() {
        for id in TopicID.allCases {
            #expect(setting("unclean.leader.election.enable", of: id) == "false")
            #expect(setting("min.insync.replicas", of: id) == "2")
            #expect(setting("max.message.bytes", of: id) == "1048588")
        }
        #expect(plan.topics(in: .production).allSatisfy { $0.partitions == 12 && $0.replicationFactor == 3 })
    }

    @Test func `names no setting twice`() {
        for definition in TopicCatalogue.definitions {
            let settings = plan.settings(of: definition).map(\.name)
            #expect(Set(settings).count == settings.count)
        }
    }

    @Test func `puts derived records where the contract says`() {
        let rules = TopicCatalogue.definitions.map { ($0.id, $0.partitionRule) }
        let byInput = rules.filter { $0.1 == .input }.map(\.0)
        #expect(byInput == [.churnCells] + WorkerName.allCases.flatMap { [.changelog($0), .deadLetters($0)] })
        #expect(rules.filter { $0.1 == .keyBeforeBar }.map(\.0) == [.accounts])
    }
}

@Suite struct `The names` {
    @Test func `of groups are those of the contract`() {
        #expect(names.group(.churn) == "appstore.production.churn")
        #expect(names.clockGroup == "appstore.production.clock")
    }

    @Test(arguments: ["a", "A.b_c-9", "appstore"])
    func `may begin with any letters Kafka takes`(_ prefix: String) { #expect(TopicPrefix(prefix) != nil) }

    @Test(arguments: ["", "a b", "a/b", "é", "a\n", "a:b"])
    func `do not begin with what Kafka refuses`(_ prefix: String) { #expect(TopicPrefix(prefix) == nil) }

    @Test func `stay within Kafka's 249 bytes, a shadow's ending included`() throws {
        let longest = String(repeating: "x", count: TopicPrefix.limitBytes)
        let names = Names(prefix: try #require(TopicPrefix(longest)), environment: .production)
        let shadow = ".replay-" + String(repeating: "n", count: 32)
        #expect(TopicID.allCases.map { (names.topic($0) + shadow).utf8.count }.max() == 249)
        #expect(TopicPrefix(longest + "x") == nil)
    }
}

@Suite struct `A period` {
    @Test(arguments: [
        ("P30D", [0, 0, 0, 30]), ("P1Y6M", [1, 6, 0, 0]), ("P2W", [0, 0, 2, 0]), ("P1Y2M3W4D", [1, 2, 3, 4]),
    ])
    func `is read as ISO 8601 writes it`(_ text: String, _ parts: [Int]) throws {
        let period = try #require(Period(text))
        #expect([period.years, period.months, period.weeks, period.days] == parts)
    }

    @Test(arguments: [
        "", "P", "30D", "P30", "PD", "P1M1Y", "P1D1D", "PT1H", "P1DT1H", "P0D", "P-1D", "P1.5D", "p1d", "P 1D",
        "P99999D",
        "P101Y", "P٣D",
    ])
    func `is nothing else`(_ text: String) { #expect(Period(text) == nil) }
}
