import Administration
import Contract
import Kafka
import Log
import Platform
import RenewalsExample
import RocksStore
import Runtime
import Service
import Telemetry

func runRenewals() throws -> ExitCode {
    try CrashNotes.install()
    let names = Names(prefix: TopicPrefix("appstore")!, environment: .production)
    let definition = Renewals(names, partitions: 12).definition
    let logger = Logger(level: .info, format: .text)
    let health = Health()
    let metrics = Metrics()
    let replica = Replica.slot(0)
    let memory = MemoryPlan(bytes: 64 << 20, threads: 1, partitions: 12)
    let directory = try WorkerDirectory(
        directory: "state", group: definition.group, replica: replica, threads: 1,
        makeStores: RocksStores.sharing(
            StoreCache(bytes: memory.blockBytes, bufferBytes: memory.bufferBytes, stores: memory.stores)))
    var configuration = WorkerService.Configuration()
    configuration.replica = replica
    configuration.memory = memory
    configuration.leftovers = directory.leftovers
    configuration.crashNotes = directory
    configuration.aside = directory.aside
    let worker = WorkerService(
        { Renewals(names, partitions: 12) }, log: KafkaLog(ClientProperties(bootstrapServers: "localhost:9092")),
        stores: directory.stores, configuration, health: health, metrics: metrics, logger: logger)
    let admin = AdminServer(
        listen: ListenAddress("127.0.0.1:9468")!, health: health, metrics: metrics, logger: logger)
    return Service([admin, worker], health: health, logger: logger).run()
}

Signals.holdBack()
do {
    endProcess(try runRenewals())
} catch {
    printMessage("renewals-worker: \(error)")
    endProcess(.wrongUsage)
}
