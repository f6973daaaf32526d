// What all processes of a replay must agree on, and where it is stored.

import Cluster
import Contract
import JSON
import Log
import NotificationWorker
import Platform
import Runtime
import Workers

/// The only record of a replay's plan topic. The process that starts the replay writes it; others that join or continue must match.
struct ReplayPlan: Equatable {
    /// `perennial/<version>`: one shadow must not contain records of two versions, because a comparison could not separate them.
    var app: String
    /// Hash of the settings that decide the content.
    var rules: String?
    /// The text of `--from`; nil: all output is written.
    var from: String?
    /// `from` in offsets.
    var silentBefore: [TopicPartition: NextOffset] = [:]
    /// Milliseconds since 1970.
    var begunAt: Int64

    init(_ definition: WorkerDefinition, from: String?, at now: Int64) {
        app = definition.app
        rules = definition.rules
        self.from = from
        begunAt = now
    }

    /// Why a process with the plan `other` cannot join; nil: it can.
    func refusal(of other: ReplayPlan, _ identity: ReplayIdentity) -> String? {
        let remedy =
            "run the replay as it was started, use another --name, or remove it with perennial replay "
            + "\(identity.worker.rawValue) --drop \(identity.shadow)"
        if from != other.from {
            func words(_ from: String?) -> String { from.map { "with --from \($0)" } ?? "without --from" }
            return "replay \(identity) was started \(words(from)), but this call is \(words(other.from)): \(remedy)"
        }
        if app != other.app {
            return "replay \(identity) was started by \(app), but this is \(other.app): \(remedy)"
        }
        if rules != other.rules {
            return
                "replay \(identity) was started with other settings (rules \(rules ?? "none"); those of this process are "
                + "\(other.rules ?? "none")): \(remedy)"
        }
        return nil
    }

    // MARK: Coding

    var encoded: [UInt8] {
        var json = JSONWriter()
        json.object { plan in
            plan.member("v", 1)
            plan.member("app", app)
            plan.member("rules", rules)
            plan.member("from", from)
            plan.member("begunAt", begunAt)
            plan.name("silentBefore")
            plan.array { list in
                for (partition, next) in silentBefore.sorted(by: { $0.key < $1.key }) {
                    list.object { place in
                        place.member("topic", partition.topic)
                        place.member("partition", partition.partition)
                        place.member("offset", next.value)
                    }
                }
            }
        }
        return json.bytes
    }

    /// nil: this version does not know the format of the plan.
    init?(_ bytes: [UInt8]) {
        guard let json = try? JSONValue.read(bytes), json["v"]?.integer == 1, let app = json["app"]?.string,
            let begunAt = json["begunAt"]?.integer, let places = json["silentBefore"]?.array
        else { return nil }
        self.app = app
        self.begunAt = begunAt
        rules = json["rules"]?.string
        from = json["from"]?.string
        for place in places {
            guard let topic = place["topic"]?.string, let partition = place["partition"]?.integer,
                let number = Int32(exactly: partition), let offset = place["offset"]?.integer
            else { return nil }
            silentBefore[TopicPartition(topic, number)] = NextOffset(offset)
        }
    }
}

/// The topic that stores a plan. The first record counts: if two processes start at once, the later one reads the plan of the
/// other.
struct PlanTopic {
    let name: String
    let group: String
    let log: any RecordLog

    init(_ identity: ReplayIdentity, _ log: any RecordLog) {
        name = identity.planTopic
        group = identity.group
        self.log = log
    }

    /// nil: there is no plan yet.
    func read(by deadline: Deadline) throws(ToolFault) -> ReplayPlan? {
        let bytes: [UInt8]?
        do throws(LogFault) { bytes = try first(by: deadline) } catch { throw ToolFault(error) }
        guard let bytes else { return nil }
        guard let plan = ReplayPlan(bytes) else {
            throw ToolFault(
                .wrongUsage, "\(name) has a plan that this version cannot read: was it written by a later version?")
        }
        return plan
    }

    private func first(by deadline: Deadline) throws(LogFault) -> [UInt8]? {
        let reader = try log.openReader(ReaderOptions(name: "replay-plan", group: group, topics: [name]))
        defer { reader.close(by: Deadline(after: .seconds(2))) }
        let partition = TopicPartition(name, 0)
        let end = try reader.ends(.committed, of: [partition], by: deadline)[partition]
        guard let end, end.value > 0 else { return nil }
        try reader.read(from: [partition: NextOffset(0)])
        let batch = RecordBatch()
        defer { batch.removeAll() }
        while !deadline.hasPassed {
            try reader.poll(into: batch, limit: 1, wait: .milliseconds(100))
            if batch.count > 0 { return batch[0].copyOfValue() ?? [] }
        }
        throw LogFault(.retrySameCall, .timedOut, "the record of \(name) did not arrive in time")
    }

    /// Returns the plan that counts: this one, or one that another process wrote first.
    func write(_ plan: ReplayPlan, by deadline: Deadline) throws(ToolFault) -> ReplayPlan {
        do throws(LogFault) {
            let writer = try log.openWriter(WriterOptions(name: "replay-plan", topics: [name]))
            defer { writer.close(by: Deadline(after: .seconds(2))) }
            let batch = OutputBatch()
            batch.append(topic: 0, partition: 0, timestamp: plan.begunAt, key: nil, value: plan.encoded)
            _ = try writer.append(batch, by: deadline)
        } catch {
            throw ToolFault(.gaveUp, error.words)
        }
        guard let first = try read(by: deadline) else {
            throw ToolFault(.gaveUp, "the plan was written to \(name) but cannot be read back")
        }
        return first
    }
}
