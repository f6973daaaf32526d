// One call of `perennial promote`.

import ChurnWorker
import Cluster
import CommandLine
import Configuration
import Contract
import EntitlementsWorker
import Kafka
import Log
import NotificationWorker
import Platform
import RocksStore
import Runtime
import Store
import Telemetry
import Workers

struct PromoteRun {
    /// Single requests to Kafka take seconds; reading whole topics takes longer.
    private static let askingLimit: Duration = .seconds(60)
    private static let readingLimit: Duration = .seconds(86_400)

    let query: PromoteQuery
    let configuration: Configuration
    let output: Output

    private var names: Names { configuration.names }
    private var log: any RecordLog { configuration.clientProperties.makeLog() }
    private var moved: ReplayIdentity { identity(query.moved) }
    private func identity(_ name: ShadowName) -> ReplayIdentity {
        ReplayIdentity(worker: query.worker, names: names, shadow: name)
    }
    private func tell(_ words: String) { output.message("perennial promote: \(words)") }

    func run() throws(ToolFault) -> ExitCode {
        let make = try query.worker.processors(configuration) { tell($1) }
        let definition = make(Metrics(), nil).definition
        return try withScratch { scratch throws(ToolFault) in
            let findings = try find(definition, scratch)
            if query.isJSON { output.data(findings.json) } else { findings.textLines.forEach(output.data) }
            guard findings.reasons.isEmpty else { return .no }
            guard query.applies else {
                tell("nothing was written; --apply promotes the replay")
                return .done
            }
            return try apply(findings, definition, scratch)
        }
    }

    // MARK: Findings

    private func find(
        _ definition: WorkerDefinition, _ scratch: any PartitionStores
    ) throws(ToolFault) -> PromoteFindings {
        let access = try ClusterAccess.connect(configuration, as: "promote")
        defer { access.close() }
        let there = Dictionary(
            access.cluster.topics.map { ($0.name, $0.partitions.count) }, uniquingKeysWith: { first, _ in first })
        guard there[moved.planTopic] != nil, there[moved.changelog] != nil else {
            let words =
                query.goesBack
                ? "the state before the promotion of \(query.name) was not kept, or it was dropped"
                : "there is no replay \(moved): run one with perennial replay \(query.worker.rawValue) --name \(query.name)"
            throw ToolFault(.no, words)
        }
        try judgePartitions(there)
        let deadline = Deadline(after: Self.askingLimit)
        let plan = try PlanTopic(moved, log).read(by: deadline)
        let promotion = promotion(definition, scratch, keeps: false) { _ throws(PromotionFault) in }
        let (live, shadow) = try asking { () throws(PromotionFault) in
            (
                try promotion.standing(ofLive: true, by: deadline),
                try promotion.standing(ofLive: false, by: deadline)
            )
        }
        return PromoteFindings(
            query: query, names: names, live: live, shadow: shadow, rules: plan?.rules,
            liveMembers: try members(of: names.group(query.worker), access, by: deadline),
            shadowMembers: try members(of: moved.group, access, by: deadline),
            planReasons: reasons(plan, definition), unknownApps: try unknownApps(promotion),
            counts: query.applies ? nil : try counts(promotion, definition))
    }

    private func members(
        of group: String, _ access: ClusterAccess, by deadline: Deadline
    ) throws(ToolFault) -> [String] {
        try access.members(of: group, by: deadline).map { $0.instanceID ?? $0.clientID }
    }

    private func judgePartitions(_ there: [String: Int]) throws(ToolFault) {
        let wanted = configuration.topicPlan.partitions
        for (live, shadow) in moved.topics {
            for topic in [live, shadow] {
                guard let count = there[topic] else { throw ToolFault(.no, "the topic \(topic) is missing") }
                if count != wanted {
                    throw ToolFault(
                        .no, LogFault.partitions(of: topic, are: Int32(count), not: Int32(wanted)).words)
                }
            }
        }
    }

    private func reasons(_ plan: ReplayPlan?, _ definition: WorkerDefinition) -> [String] {
        guard let plan else { return ["the replay has no plan: it was never started"] }
        var reasons: [String] = []
        if let from = plan.from {
            reasons.append(
                "the replay was started with --from \(from), so it lacks values that have not changed since. Run one without --from"
            )
        }
        let wanted = ReplayPlan(definition, from: plan.from, at: plan.begunAt)
        if let words = plan.refusal(of: wanted, moved) { reasons.append(words) }
        return reasons
    }

    /// Only for `entitlements`: churn does not depend on the setting apps.
    private func unknownApps(_ promotion: Promotion) throws(ToolFault) -> [String] {
        guard query.worker == .entitlements else { return [] }
        let known = Set(configuration.apps.map(\.bundleId))
        var unknown: Set<String> = []
        try asking { () throws(PromotionFault) in
            try promotion.eachLiveValue(by: Deadline(after: Self.readingLimit)) { value in
                guard let app = EntitlementsPromotion.bundleId(of: value), !known.contains(app) else { return }
                unknown.insert(app)
            }
        }
        return unknown.sorted()
    }

    private func counts(_ promotion: Promotion, _ definition: WorkerDefinition) throws(ToolFault) -> PromotionCounts {
        try asking { () throws(PromotionFault) in
            try promotion.count(Array(0..<definition.partitions), by: Deadline(after: Self.readingLimit))
        }
    }

    // MARK: Steps

    private func apply(
        _ findings: PromoteFindings, _ definition: WorkerDefinition, _ scratch: any PartitionStores
    ) throws(ToolFault) -> ExitCode {
        if findings.lag > 0 {
            let code = try catchUp(findings.live, definition)
            guard code == .done else { return code }
        }
        if !query.goesBack, findings.live.promotion == nil { try prepareCopy(findings.live, definition) }
        let steps = promotion(definition, scratch, keeps: !query.goesBack) { step throws(PromotionFault) in
            // The command may end at any point; a signal is handled between two steps.
            if let signal = Signals.wait(for: .zero), signal != .hangUp {
                throw .log(
                    LogFault(.stop, .other, "a signal stopped the command: run it again to continue"))
            }
            tell("\(step)")
        }
        let counts = try asking { () throws(PromotionFault) in
            try steps.run(by: Deadline(after: Self.readingLimit))
        }
        tell(
            "\(query.moved) is live: \(counts.changed) values changed, \(counts.added) are new, \(counts.removed) were "
                + "removed, \(counts.same) stayed. Start the workers with these settings")
        if !query.goesBack {
            let worker = query.worker.rawValue
            tell(
                "to undo this, run perennial promote \(worker) --name \(query.name) --back with the earlier settings; perennial "
                    + "replay \(worker) --drop \(query.keptName) removes the state that is kept for that")
        }
        return .done
    }

    /// Lets the replay read exactly what the live worker has read.
    private func catchUp(
        _ live: Promotion.Standing, _ definition: WorkerDefinition
    ) throws(ToolFault) -> ExitCode {
        var bounds: [TopicPartition: NextOffset] = [:]
        for topic in definition.inputTopics {
            for number in 0..<definition.partitions {
                let partition = TopicPartition(topic, number)
                bounds[partition] = live.positions[partition] ?? NextOffset(0)
            }
        }
        let run = ReplayQuery.Run(name: query.moved)
        let code = try ReplayRun(
            query: run, identity: moved, configuration: configuration, output: output, bounds: bounds
        ).run()
        if code != .done { tell("the replay did not reach the position of the live worker: nothing was written") }
        return code
    }

    /// Removes what an earlier promotion of this name kept, unless it has the same positions.
    private func prepareCopy(_ live: Promotion.Standing, _ definition: WorkerDefinition) throws(ToolFault) {
        let kept = identity(query.keptName)
        let access = try ClusterAccess.connect(configuration, as: "promote")
        defer { access.close() }
        let deadline = Deadline(after: Self.askingLimit)
        let known = try ToolFault.persisting(until: deadline) { () throws(KafkaFault) in
            try access.admin.currentOffsets(ofGroup: kept.group, by: deadline)
        }
        let isThere = access.cluster.topics.contains { $0.name == kept.planTopic }
        if isThere, known == live.positions { return }
        if isThere {
            let quiet = Output(data: { _ in }, message: output.message)
            let code = try ReplayDrop(identity: kept, configuration: configuration, output: quiet).run()
            guard code == .done else { throw ToolFault(code, "the kept state could not be removed") }
        }
        let cluster = try ToolFault.persisting(until: deadline) { () throws(KafkaFault) in
            try access.admin.cluster(by: deadline)
        }
        try ReplayTopics(identity: kept, admin: access.admin).create(cluster, by: deadline)
        var plan = ReplayPlan(definition, from: nil, at: WallClock.milliseconds())
        (plan.app, plan.rules) = try makers(definition, by: deadline) ?? (plan.app, plan.rules)
        _ = try PlanTopic(kept, log).write(plan, by: deadline)
    }

    /// The version and the rules that wrote the last live value.
    private func makers(
        _ definition: WorkerDefinition, by deadline: Deadline
    ) throws(ToolFault) -> (app: String, rules: String?)? {
        let topic = definition.outputs[0].topic
        let survey = try InputSurvey(log, topics: [topic], group: names.group(query.worker), by: deadline)
        defer { survey.close() }
        let partitions = (0..<definition.partitions).map { TopicPartition(topic, $0) }
        let ends = try survey.ends(partitions)
        // A commit writes a value and then a marker.
        let starts = ends.filter { $0.value.value > 0 }.mapValues { NextOffset(max(0, $0.value - 100)) }
        return try survey.lastHeaders(starts, to: ends, until: deadline)
    }

    // MARK: Parts

    private func promotion(
        _ definition: WorkerDefinition, _ scratch: any PartitionStores, keeps: Bool,
        begins: @escaping (PromotionStep) throws(PromotionFault) -> Void
    ) -> Promotion {
        let rules: any PromotionRules =
            query.worker == .churn
            ? ChurnPromotion() : EntitlementsPromotion(partitions: definition.partitions)
        return Promotion(
            live: definition, shadow: definition.shadow(Shadow(query.moved)),
            kept: keeps ? definition.shadow(Shadow(query.keptName)) : nil, name: query.moved.description,
            rules: rules, log: log, scratch: scratch, begins: begins)
    }

    private func asking<Answer>(_ body: () throws(PromotionFault) -> Answer) throws(ToolFault) -> Answer {
        do throws(PromotionFault) {
            return try body()
        } catch {
            switch error {
            case .refused(let reasons): throw ToolFault(.no, lines: reasons)
            case .log, .store: throw ToolFault(.gaveUp, error.description)
            }
        }
    }

    /// Tables that only this call needs.
    private func withScratch(
        _ body: (any PartitionStores) throws(ToolFault) -> ExitCode
    ) throws(ToolFault) -> ExitCode {
        let path = "\(configuration.worker.stateDirectory)/\(names.group(query.worker)).promote"
        defer { try? removeDirectory(path) }
        let stores: RocksStores
        do throws(StoreFault) {
            let cache = StoreCache(bytes: configuration.worker.stateCacheBytes / 2)
            stores = try RocksStores(directory: path, cache: cache)
        } catch {
            throw ToolFault(.gaveUp, "state.directory cannot be used: \(error.words)")
        }
        return try body(stores)
    }
}
