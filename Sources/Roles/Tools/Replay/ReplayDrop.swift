// `perennial replay WORKER --drop NAME`: removes everything that a replay has created, and nothing else.

import Cluster
import CommandLine
import Configuration
import Kafka
import Platform
import Workers

struct ReplayDrop {
    let identity: ReplayIdentity
    let configuration: Configuration
    let output: Output

    private var directory: String { "\(configuration.worker.stateDirectory)/\(identity.group)" }

    func run() throws(ToolFault) -> ExitCode {
        let deadline = Deadline(after: .seconds(28))
        let access = try ClusterAccess.connect(configuration, as: "replay")
        defer { access.close() }
        let members = try access.members(of: identity.group, by: deadline)
        guard members.isEmpty else {
            output.message(
                "perennial replay: nothing was removed: the replay \(identity) is running. Stop it first. The group drops a killed "
                    + "process after \(WorkerRun.Replay.sessionTimeout.wholeMilliseconds / 1000) s")
            for member in members { output.message("perennial replay: \(GroupReport.words(member))") }
            return .no
        }
        // Checked before anything changes in Kafka: a process of this host may be about to join.
        try refuseLocked()
        let there = Set(access.cluster.topics.map(\.name))
        var removed = 0
        removed += try delete(identity.topics.map(\.shadow).filter(there.contains), access.admin, by: deadline)
        removed += try deleteGroup(access.admin, by: deadline)
        removed += try deleteState()
        // Deleted last: while this topic exists, the rest can be found and dropped after a fault.
        removed += try delete([identity.planTopic].filter(there.contains), access.admin, by: deadline)
        if removed == 0 {
            output.message("perennial replay: there is no replay \(identity); nothing was removed")
            return .no
        }
        return .done
    }

    private func refuseLocked() throws(ToolFault) {
        let names: [String]
        do throws(SystemFailure) {
            names = try filesOfDirectory(directory)
        } catch {
            throw ToolFault(.gaveUp, "state.directory cannot be used: \(error)")
        }
        for name in names where name.hasSuffix(".lock") {
            do throws(FileLockFault) {
                try FileLock.take("\(directory)/\(name)").release()
            } catch {
                throw ToolFault(.no, "nothing was removed: replay \(identity) is running on this host: \(error)")
            }
        }
    }

    /// Returns when no broker shows the topics any more: the next replay of this name must not use them.
    private func delete(_ topics: [String], _ admin: Admin, by deadline: Deadline) throws(ToolFault) -> Int {
        if topics.isEmpty { return 0 }
        try ToolFault.asking { () throws(KafkaFault) in
            for (_, fault) in try admin.delete(topics: topics, by: deadline) {
                if let fault, fault.code != .unknownTopicOrPartition { throw fault }
            }
            while true {
                let known = Set(try admin.cluster(by: deadline).topics.map(\.name))
                if known.isDisjoint(with: topics) { return }
                if deadline.hasPassed {
                    throw KafkaFault(.retrySameCall, .timedOut, operation: "see that the topics are deleted")
                }
                pause(for: .milliseconds(50))
            }
        }
        for topic in topics { output.data("removed  topic  \(topic)") }
        return topics.count
    }

    private func deleteGroup(_ admin: Admin, by deadline: Deadline) throws(ToolFault) -> Int {
        let isGone = try ToolFault.persisting(until: deadline) { () throws(KafkaFault) in
            do throws(KafkaFault) {
                try admin.delete(group: identity.group, by: deadline)
                return false
            } catch {
                if error.code == .groupNotFound { return true }
                throw error
            }
        }
        if isGone { return 0 }
        output.data("removed  group  \(identity.group)")
        return 1
    }

    private func deleteState() throws(ToolFault) -> Int {
        guard fileExists(directory) else { return 0 }
        do throws(SystemFailure) { try removeDirectory(directory) } catch {
            throw ToolFault(.gaveUp, "the local state could not be removed: \(error)")
        }
        output.data("removed  state  \(directory)")
        return 1
    }
}
