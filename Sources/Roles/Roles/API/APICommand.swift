// `perennial api`: wiring.

import Churn
import Cluster
import CommandLine
import Configuration
import Contract
import Kafka
import Platform
import ReadAPI
import RocksStore
import Service
import Serving
import Telemetry
import Zone

extension Command {
    static let api = Command(
        .api,
        "Answers questions about entitlements, refund requests and churn over HTTP, from a local copy of the topics.",
        details: """
            GET /v1/subscriptions/{originalTransactionId}, /v1/subscriptions/{id}/content?published=MS,
            /v1/subscriptions/{id}/history?before=SEQUENCE, /v1/subscriptions/{id}/refunds, /v1/refunds/{notificationUUID},
            /v1/accounts/{appAccountToken}, /v1/metrics?from=DAY&to=DAY&by=product,plan,storefront,currency&interval=day|week|month (Accept: text/csv
            for a table).
            With api.token, requests need one of its tokens; the API reads them again on SIGHUP and when their file changes.
            The API follows entitlements, entitlement-events, accounts, churn-cells and consumption of both environments, unless one is
            set. ?environment= asks one of them; otherwise the API looks in production first. It answers 503 until its copy is complete,
            and when a worker is farther behind than api.max.behind.ms. The member position of an answer says how far. Set churn.zone to the
            value that perennial churn has. state.directory holds the copy, which is rebuilt if it is lost. Replicas are independent; on one
            machine each needs a state.directory of its own. The metrics show figures of the business by app and entitlement; apps says
            what each product gives. Runs until SIGTERM or SIGINT.
            """,
        action: .service { invocation, configuration in
            let environments = configuration.namedEnvironments
            let label = environments.count == 1 ? environments[0].rawValue : "both"
            guard let process = ServiceRun(.api, configuration, environment: label, output: invocation.output) else {
                return .wrongUsage
            }
            return run(process, configuration, invocation)
        })

    private static func run(
        _ process: ServiceRun, _ configuration: Configuration, _ invocation: Invocation
    ) -> ExitCode {
        let output = invocation.output
        let partitions = configuration.topicPlan.partitions
        let environments = configuration.namedEnvironments
        process.allowFiles(ofStores: environments.count * partitions)
        let zone: Zone
        do {
            zone = try Zone(name: configuration.churnZone)
        } catch {
            output.message("perennial api: churn.zone: \(error)")
            return .wrongUsage
        }
        var sources: [ReadAPIService.Source] = []
        var directories: [String] = []
        do {
            // One cache for all stores: the setting is the limit of the process.
            let bytes = configuration.worker.stateCacheBytes
            let makeStores = RocksStores.sharing(
                StoreCache(
                    bytes: bytes, bufferBytes: bytes / 4,
                    stores: configuration.topicPlan.partitions * environments.count))
            for environment in environments {
                let names = Names(prefix: configuration.topicPlan.prefix, environment: environment)
                let path = "\(configuration.worker.stateDirectory)/\(names.apiGroup)"
                sources.append(ReadAPIService.Source(names, try makeStores(path)))
                directories.append(path)
            }
            return try locking(directories[...]) {
                serve(process, sources, zone, configuration, reload: invocation.reload)
            }
        } catch {
            output.message("perennial api: state.directory cannot be used: \(error)")
            return .gaveUp
        }
    }

    /// Without this lock, two processes in one directory would each lock some of the stores.
    private static func locking(_ directories: ArraySlice<String>, _ body: () -> ExitCode) throws -> ExitCode {
        guard let directory = directories.first else { return body() }
        let lock = try FileLock.take("\(directory)/lock")
        let code = try locking(directories.dropFirst(), body)
        lock.release()
        return code
    }

    private static func serve(
        _ process: ServiceRun, _ sources: [ReadAPIService.Source], _ zone: Zone, _ configuration: Configuration,
        reload: @escaping @Sendable () throws -> Configuration
    ) -> ExitCode {
        let logger = process.logger
        let api = ReadAPIService(
            ReadAPIService.Configuration(
                sources, partitions: configuration.topicPlan.partitions, listen: configuration.api.listen,
                tokens: configuration.api.tokens,
                maxBehind: configuration.api.maxBehind, dayOf: { zone.day(of: $0) }, rules: CellRules(zone),
                products: ProductGroups(configuration.apps)),
            log: process.kafka.makeLog(), health: process.health, metrics: process.metrics, logger: logger)
        let files = configuration.files
        let readTokens: @Sendable () throws -> Void = {
            let tokens = try reload().api.tokens
            try api.replace(tokens: tokens)
            logger.info("api.token was read again", ["tokens": .integer(tokens.count)])
        }
        let watch = FileWatch({ files }, logger: logger, reload: readTokens)
        return process.service([process.makeAdmin()] + api.parts + [watch], reload: readTokens).run()
    }
}
