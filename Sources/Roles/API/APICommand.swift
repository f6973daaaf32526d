// `perennial api`: wiring.

import Churn
import Configuration
import Contract
import Kafka
import Platform
import ReadAPI
import Service
import Store
import Telemetry
import Zone

extension Command {
    static let api = Command(
        .api,
        "Answers who may use what, what became of refunds, and how many stay, over HTTP, from a local copy of the topics.",
        details: """
            GET /v1/subscriptions/{originalTransactionId}, /v1/subscriptions/{id}/content?published=MS,
            /v1/subscriptions/{id}/refunds, /v1/refunds/{notificationUUID}, /v1/accounts/{appAccountToken},
            /v1/metrics?from=DAY&to=DAY&by=product,plan,storefront,currency; with api.token only for those who bear it. Follows
            entitlements, accounts, churn-cells and consumption of one environment, and answers 503 until it has caught up. churn.zone should be that of perennial churn. What is in state.directory is a copy: lost, it is built
            anew. Replicas are independent of each other; on one machine each needs a state.directory of its own. Runs until
            SIGTERM or SIGINT.
            """,
        action: .service { invocation, configuration in
            guard configuration.kafka.bootstrapServers != nil else {
                invocation.output.message(
                    "perennial api: kafka.bootstrap.servers is not set: name one or more brokers as host:port, separated by "
                        + "commas")
                return .wrongUsage
            }
            return run(configuration, invocation.output)
        })

    /// Of one partition's store, for its files beside those of connections.
    private static let descriptorsPerPartition = 300
    /// For connections, Kafka's brokers, the admin server and the system's own.
    private static let spareDescriptors = 1_500

    private static func run(_ configuration: Configuration, _ output: Output) -> ExitCode {
        let logger = Logger(level: configuration.service.logLevel, format: configuration.service.logFormat)
        let partitions = configuration.topicPlan.partitions
        let wanted = partitions * descriptorsPerPartition + spareDescriptors
        let possible = DescriptorLimit.raise(to: wanted)
        if possible < wanted {
            logger.info(
                "fewer open files than a large state would use: raise the limit (ulimit -Hn) if that is told",
                ["files": .integer(possible), "wanted": .integer(wanted)])
        }
        let zone: Zone
        do {
            zone = try Zone(name: configuration.churnZone)
        } catch {
            output.message("perennial api: churn.zone: \(error)")
            return .wrongUsage
        }
        // Two processes in one directory would each find the other's stores locked, one at a time.
        let lock: FileLock
        let stores: RocksStores
        let path = "\(configuration.worker.stateDirectory)/\(configuration.names.apiGroup)"
        do {
            stores = try RocksStores(
                directory: path, cache: StoreCache(bytes: configuration.worker.stateCacheBytes))
            lock = try FileLock.take("\(path)/lock")
        } catch {
            output.message("perennial api: state.directory cannot be used: \(error)")
            return .gaveUp
        }
        let metrics = Metrics()
        metrics.buildInfo(version: PerennialVersion.text)
        let health = Health()
        let admin = AdminServer(
            listen: configuration.service.adminListen, health: health, metrics: metrics, logger: logger)
        let api = ReadAPIService(
            ReadAPIService.Configuration(
                configuration.names, partitions: partitions, listen: configuration.api.listen,
                token: configuration.api.token, dayOf: { zone.day(of: $0) }, rules: CellRules(zone)),
            log: KafkaLog(configuration.kafka), stores: stores, health: health, metrics: metrics, logger: logger)
        let code = Service([admin] + api.parts, health: health, logger: logger).run()
        lock.release()
        return code
    }
}
