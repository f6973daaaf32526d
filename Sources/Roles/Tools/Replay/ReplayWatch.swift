// Shows the progress of a replay, and stops it at its end.

import Cluster
import CommandLine
import Configuration
import Contract
import Kafka
import Log
import Platform
import Runtime
import Service
import Synchronization
import Workers

/// It uses the positions of the group, so that every process of a replay sees the same. Each process ends when all partitions are
/// at the ends that it found at its start, also those of other processes.
final class ReplayWatch: Sendable {
    private static let interval: Duration = .milliseconds(300)
    /// How often the progress of other processes is read.
    private static let groupInterval: Duration = .seconds(1)
    /// During a rebalance partitions are unassigned for a moment, and other processes may make progress.
    private static let standstillPatience: Duration = .seconds(5)

    private let identity: ReplayIdentity
    private let configuration: Configuration
    private let follows: Bool
    private let output: Output
    private let progress: Mutex<ReplayProgress>
    private let gaveUp = Atomic(false)

    init(
        _ identity: ReplayIdentity, _ configuration: Configuration, _ progress: ReplayProgress, follows: Bool,
        output: Output
    ) {
        self.identity = identity
        self.configuration = configuration
        self.follows = follows
        self.output = output
        self.progress = Mutex(progress)
    }

    var seen: ReplayProgress { progress.withLock { $0 } }
    /// It was stopped because no partition could continue.
    var hasGivenUp: Bool { gaveUp.load(ordering: .relaxed) }

    /// - Parameter run: the worker of this process.
    func part(_ run: WorkerRun.Parts) -> any ServicePart {
        ThreadPart("progress") { latch in
            let admin = try Admin(clientID: "perennial-replay", properties: self.configuration.clientProperties)
            defer { admin.close(by: Deadline(after: .seconds(2))) }
            let start = ContinuousClock.now
            var nextLook = start
            var bar = ProgressBar.standardError()
            var (isAtEnd, isTold) = (false, false)
            var quietSince = start
            var last = self.seen.positions
            while !latch.wait(for: Self.interval) {
                if nextLook <= .now {
                    self.look(admin)
                    nextLook = .now + Self.groupInterval
                }
                self.lookAt(run.worker)
                let seen = self.seen
                if seen.positions != last { (last, quietSince) = (seen.positions, .now) }
                // The last offset may not be a record: nobody commits a position after it.
                if quietSince.duration(to: .now) >= .seconds(1) { self.lookBehind(seen) }
                if isAtEnd { continue }
                bar.update(seen.fraction) { Self.words(seen, start.duration(to: .now)) }
                if !isTold, quietSince.duration(to: .now) >= Self.standstillPatience, !seen.standstill.isEmpty {
                    isTold = true
                    bar.end()
                    self.giveUp(seen, run)
                }
                guard self.seen.isAtEnd else { continue }
                isAtEnd = true
                bar.end()
                if self.follows {
                    self.output.message(
                        "perennial replay: \(self.identity) is at its end and continues with new records until SIGTERM")
                } else {
                    run.stop()
                }
            }
            bar.end()
        }
    }

    /// All other partitions are at their end. With `--follow`, they continue with new records.
    private func giveUp(_ seen: ReplayProgress, _ run: WorkerRun.Parts) {
        for (number, words) in seen.standstill.sorted(by: { $0.key < $1.key }) {
            output.message("perennial replay: \(identity) cannot continue in partition \(number): \(words)")
        }
        if follows { return }
        gaveUp.store(true, ordering: .relaxed)
        run.stop()
    }

    static func words(_ seen: ReplayProgress, _ time: Duration) -> String {
        let rate = time > .zero ? Int(Double(seen.done) / time.fractionalSeconds) : 0
        return "\(seen.done) of \(seen.total) records, \(rate)/s, "
            + "\(seen.partitionsAtEnd) of \(seen.partitions) partitions at their end"
    }

    /// Reads the current positions of the group. If a broker does not answer, the next call asks again.
    func look(_ admin: Admin) {
        guard let positions = try? admin.currentOffsets(ofGroup: identity.group, by: Deadline(after: .seconds(5)))
        else { return }
        progress.withLock { $0.update(positions) }
    }

    /// Takes the positions that this process has committed. The positions of the group are not enough: Kafka deletes them when the
    /// group has no members for a week, while the state remains, and they do not pass markers of transactions.
    private func lookAt(_ worker: WorkerService) {
        let topics = identity.worker.inputs.map(identity.names.topic)
        var positions: [TopicPartition: NextOffset] = [:]
        for number in 0..<Int32(configuration.topicPlan.partitions) {
            guard let next = worker.positions(of: number) else { continue }
            for (topic, place) in zip(topics, next) { positions[TopicPartition(topic, number)] = place }
        }
        let holding = worker.holding
        progress.withLock { progress in
            progress.update(positions)
            progress.holding = holding
        }
    }

    private func lookBehind(_ seen: ReplayProgress) {
        let spans = seen.left.filter { $0.value.count <= Int(InputSurvey.countLimit) }
        if spans.isEmpty { return }
        let patience = Deadline(after: .seconds(2))
        let topics = identity.worker.inputs.map(identity.names.topic)
        guard
            let survey = try? InputSurvey(
                configuration.clientProperties.makeLog(), topics: topics, group: identity.group, by: patience)
        else { return }
        defer { survey.close() }
        guard let counts = try? survey.count(spans, until: patience) else { return }
        progress.withLock { progress in
            for (partition, count) in counts where count == 0 { progress.noteRead(partition) }
        }
    }
}
