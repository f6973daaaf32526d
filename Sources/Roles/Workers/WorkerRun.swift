// What every worker's command does around its processor.

import Configuration
import Contract
import Kafka
import Platform
import Runtime
import Service
import Telemetry

/// Runs a worker on Kafka until a signal comes.
struct WorkerRun {
    let worker: Contract.Worker
    let configuration: Configuration
    let output: Output
    let replica: Replica

    init(worker: Contract.Worker, configuration: Configuration, output: Output) {
        self.worker = worker
        self.configuration = configuration
        self.output = output
        replica = configuration.worker.slot.number(hostName: HostName.current).map { .slot($0) } ?? .makeDynamic()
    }

    /// What a part beside the worker is made of.
    struct Parts {
        let worker: WorkerService
        let log: KafkaLog
        let health: Health
        let metrics: Metrics
        let logger: Logger
    }

    /// - Parameters:
    ///   - beside: parts that act on what the worker writes; they start after it and end before it.
    ///   - makeProcessor: called once for each thread.
    func run(
        beside: ((Parts) -> [any ServicePart])? = nil,
        _ makeProcessor: @escaping @Sendable (Metrics) -> any Processor
    ) -> ExitCode {
        guard configuration.kafka.bootstrapServers != nil else {
            output.message(
                "perennial \(worker.rawValue): kafka.bootstrap.servers is not set: name one or more brokers as host:port, "
                    + "separated by commas")
            return .wrongUsage
        }
        let settings = configuration.service
        let logger = Logger(level: settings.logLevel, format: settings.logFormat)
        let metrics = Metrics()
        metrics.buildInfo(version: PerennialVersion.text)
        let health = Health()
        tellWhichReplica(logger)
        let memory = MemoryPlan(
            bytes: configuration.worker.stateCacheBytes, threads: configuration.worker.threads,
            partitions: configuration.topicPlan.partitions)
        let directory: WorkerDirectory
        do {
            try CrashNotes.install()
            directory = try WorkerDirectory(
                directory: configuration.worker.stateDirectory, group: configuration.names.group(worker),
                replica: replica, threads: configuration.worker.threads, memory: memory)
        } catch {
            output.message("perennial \(worker.rawValue): \(error)")
            return .gaveUp
        }
        var options = WorkerService.Configuration()
        options.replica = replica
        options.leaves = configuration.worker.leaves
        options.leftovers = directory.leftovers
        options.threads = configuration.worker.threads
        options.commitInterval = configuration.worker.commitInterval
        options.memory = memory
        options.crashNotes = directory
        options.aside = directory.aside
        options.showsOwnership = beside != nil
        let log = KafkaLog(configuration.kafka)
        let service = WorkerService(
            { makeProcessor(metrics) }, log: log, stores: directory.stores, options,
            health: health, metrics: metrics, logger: logger)
        let admin = AdminServer(listen: settings.adminListen, health: health, metrics: metrics, logger: logger)
        let parts = Parts(worker: service, log: log, health: health, metrics: metrics, logger: logger)
        let watch = CommandName(rawValue: worker.rawValue).flatMap {
            ClusterWatch.part($0, configuration, health: health, logger: logger)
        }
        let watches: [any ServicePart] = watch.map { [$0] } ?? []
        // It ends after the worker, which has more to do.
        return Service([admin] + watches + [service] + (beside?(parts) ?? []), health: health, logger: logger).run()
    }

    /// Once: nothing is wrong with a dynamic member, but its restarts cost more.
    private func tellWhichReplica(_ logger: Logger) {
        guard replica.isDynamic else { return }
        logger.warning(
            "a dynamic member of the group, without a slot",
            [
                "replica": .string("\(replica)"),
                "reason": .string(
                    "worker.slot is auto, and the host name \(HostName.current) does not end in -<number>"),
                "detail": .string(
                    "partitions move at each start and stop; after a kill they stand still for the session (30 s). For "
                        + "restarts that move nothing give every replica a worker.slot of its own"),
            ])
    }
}
