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
        let slot = slot(logger)
        let directory: WorkerDirectory
        do {
            try CrashNotes.install()
            directory = try WorkerDirectory(
                directory: configuration.worker.stateDirectory, group: configuration.names.group(worker), slot: slot,
                cacheBytes: configuration.worker.stateCacheBytes)
        } catch {
            output.message("perennial \(worker.rawValue): \(error)")
            return .gaveUp
        }
        var options = WorkerService.Configuration()
        options.slot = slot
        options.threads = configuration.worker.threads
        options.commitInterval = configuration.worker.commitInterval
        options.cacheBytes = configuration.worker.stateCacheBytes
        options.crashNotes = directory
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

    private func slot(_ logger: Logger) -> Int {
        let hostName = HostName.current
        if let number = configuration.worker.slot.number(hostName: hostName) { return number }
        logger.warning(
            "worker.slot is 0",
            [
                "reason": .string(
                    "the host name \(hostName) does not end in a number; with several replicas set worker.slot of each")
            ])
        return 0
    }
}
