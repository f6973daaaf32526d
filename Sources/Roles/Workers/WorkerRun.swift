// The common part of all worker commands.

import Cluster
package import CommandLine
package import Configuration
package import Contract
package import Log
package import Platform
import RocksStore
package import Runtime
package import Service
import Serving
import Settings
import Synchronization
package import Telemetry

extension WorkerName {
    /// The command that runs it.
    fileprivate var command: CommandName {
        switch self {
        case .entitlements: .entitlements
        case .churn: .churn
        case .consumption: .consumption
        }
    }
}

/// Runs a worker on Kafka until a signal arrives.
package struct WorkerRun {
    let worker: WorkerName
    let configuration: Configuration
    let output: Output
    package let replica: Replica
    /// nil: this is the live worker.
    let replay: Replay?
    /// Reads the settings again; nil: the worker does not read them again.
    var reload: (@Sendable () throws -> Configuration)?

    /// What is different in a replay.
    package struct Replay {
        let identity: ReplayIdentity
        let pace: Pace?
        /// Records at or after these offsets are not read.
        var bounds: [TopicPartition: NextOffset] = [:]

        package init(identity: ReplayIdentity, pace: Pace?, bounds: [TopicPartition: NextOffset] = [:]) {
            self.identity = identity
            self.pace = pace
            self.bounds = bounds
        }

        /// After a kill its partitions are unassigned for this long. It is a dynamic member, so that its group is empty once it ends.
        package static let sessionTimeout: Duration = .seconds(10)
        /// Nobody waits for the output of a replay, and a transaction costs as much as some hundred records. A few large transactions
        /// leave more of the brokers to the live worker.
        static let commitInterval: Duration = .seconds(1)
    }

    package init(
        worker: WorkerName, configuration: Configuration, output: Output, replay: Replay? = nil,
        reload: (@Sendable () throws -> Configuration)? = nil
    ) {
        self.reload = reload
        self.replay = replay
        self.worker = worker
        self.configuration = configuration
        self.output = output
        replica = configuration.worker.slot.number(hostName: HostName.current).map { .slot($0) } ?? .makeDynamic()
    }

    /// What a further part of the process gets.
    package struct Parts {
        package let worker: WorkerService
        package let log: any RecordLog
        package let health: Health
        package let metrics: Metrics
        package let logger: Logger
        /// Stops the process like a signal.
        package let stop: @Sendable () -> Void
    }

    private final class Stopper: Sendable {
        private let service = Mutex<Service?>(nil)
        func set(_ service: Service) { self.service.withLock { $0 = service } }
        func stop() { service.withLock { $0 }?.stop() }
    }

    private var command: CommandName { replay == nil ? worker.command : .replay }
    private var group: String { replay?.identity.group ?? configuration.names.group(worker) }

    /// - Parameters:
    ///   - beside: parts that act on the worker's output; they start after it and stop before it.
    ///   - makeProcessor: called once for each thread.
    package func run(
        beside: ((Parts) -> [any ServicePart])? = nil,
        _ makeProcessor: @escaping @Sendable (Metrics) -> any Processor
    ) -> ExitCode {
        guard
            let process = ServiceRun(
                command, configuration, environment: configuration.environment.rawValue, level: level, output: output)
        else { return .wrongUsage }
        let (metrics, health, logger) = (process.metrics, process.health, process.logger)
        if replay == nil { tellWhichReplica(logger) }
        // A process may get all partitions.
        process.allowFiles(ofStores: configuration.topicPlan.partitions)
        let memory = MemoryPlan(
            bytes: configuration.worker.stateCacheBytes, threads: configuration.worker.threads,
            partitions: configuration.topicPlan.partitions)
        let cache = StoreCache(bytes: memory.blockBytes, bufferBytes: memory.bufferBytes, stores: memory.stores)
        let directory: WorkerDirectory
        do {
            try CrashNotes.install()
            directory = try WorkerDirectory(
                directory: configuration.worker.stateDirectory, group: group, replica: replica,
                threads: configuration.worker.threads,
                makeStores: RocksStores.sharing(cache))
        } catch {
            output.message("perennial \(command.rawValue): \(error)")
            return .gaveUp
        }
        show(cache, metrics)
        var options = options(directory, memory)
        options.showsOwnership = beside != nil && replay == nil
        let log = process.kafka.makeLog()
        let service = WorkerService(
            { makeProcessor(metrics) }, log: log, stores: directory.stores, options,
            health: health, metrics: metrics, logger: logger)
        let stopper = Stopper()
        let parts = Parts(
            worker: service, log: log, health: health, metrics: metrics, logger: logger, stop: { stopper.stop() })
        let telling = reload.map { tellOfRules($0, logger) }
        let watch = telling.map { [FileWatch({ [files = configuration.files] in files }, logger: logger, reload: $0)] }
        let whole = process.service(
            around(process) + [service] + (beside?(parts) ?? []) + (watch ?? []), reload: telling)
        stopper.set(whole)
        return whole.run()
    }

    /// With the entries, which each thread shows, these are the memory of the state.
    private func show(_ cache: StoreCache, _ metrics: Metrics) {
        metrics.gauge(
            "perennial_state_block_bytes", help: "Bytes of blocks of the local stores' files in memory.",
            labels: ["worker": worker.rawValue]
        ) { Double(cache.blockBytes) }
        metrics.gauge(
            "perennial_state_buffer_bytes", help: "Bytes written to the local stores that are not in files yet.",
            labels: ["worker": worker.rawValue]
        ) { Double(cache.bufferBytes) }
    }

    /// A worker keeps its rules while it runs, and a restart alone does not change earlier outputs, which followed the old rules.
    private func tellOfRules(
        _ reload: @escaping @Sendable () throws -> Configuration, _ logger: Logger
    ) -> @Sendable () throws -> Void {
        let apps = configuration.apps
        let until =
            switch worker {
            case .entitlements: "new products and apps give no entitlements until a replay is promoted"
            case .churn: "new apps are not counted until a replay is promoted"
            case .consumption: "requests of new apps are withheld until this worker is restarted"
            }
        return {
            guard try reload().apps != apps else { return }
            logger.warning(
                "apps has changed, but this worker continues with the apps that it was started with: \(until) "
                    + "(docs/how-to/change-rules.md)")
        }
    }

    private func options(_ directory: WorkerDirectory, _ memory: MemoryPlan) -> WorkerService.Configuration {
        var options = WorkerService.Configuration()
        options.replica = replica
        options.leaves = configuration.worker.leaves
        options.leftovers = directory.leftovers
        options.threads = configuration.worker.threads
        options.commitInterval = configuration.worker.commitInterval
        options.memory = memory
        options.crashNotes = directory
        options.aside = directory.aside
        if let replay {
            options.leaves = true
            options.commitInterval = max(options.commitInterval, Replay.commitInterval)
            options.sessionTimeout = Replay.sessionTimeout
            options.pace = replay.pace
            options.bounds = replay.bounds
        }
        return options
    }

    /// Parts that stop after the worker.
    private func around(_ process: ServiceRun) -> [any ServicePart] {
        // The live worker on this host uses the default port, or the port of a settings file that both read.
        let isServed = replay == nil || configuration.isFlag("admin.listen")
        // A replay needs other rights than the role.
        let cluster =
            replay == nil
            ? ClusterWatch.part(worker.command, configuration, health: process.health, logger: process.logger) : nil
        var parts: [any ServicePart] = isServed ? [process.makeAdmin()] : []
        if let cluster { parts.append(cluster) }
        return parts
    }

    /// A replay shows a progress bar, so it logs only problems. nil: what is set.
    private var level: LogLevel? { replay != nil && !configuration.isGiven("log.level") ? .warning : nil }

    /// Logged once: a dynamic member works, but its restarts cost more.
    private func tellWhichReplica(_ logger: Logger) {
        guard replica.isDynamic else { return }
        logger.warning(
            "a dynamic member of the group, without a slot",
            [
                "replica": .string("\(replica)"),
                "reason": .string(
                    "worker.slot is auto, and the host name \(HostName.current) does not end in -<number>"),
                "detail": .string(
                    "each start and stop causes a rebalance; after a kill the partitions wait for the session timeout (30 s). To "
                        + "avoid that, give every replica a worker.slot of its own"),
            ])
    }
}
