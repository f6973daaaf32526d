import Administration
import Kafka
import Ledger
import Log
import Platform
import RocksStore
import Runtime
import Service
import Store
import Telemetry

struct LedgerOptions: Sendable {
    var bootstrap = ""
    var prefix = ""
    var state = ""
    var replica = Replica.slot(0)
    var threads = 1
    var partitions: Int32 = 12
    var format: UInt8 = 1
    var sessionTimeout: Duration = .seconds(6)
    var admin = "127.0.0.1:0"
    /// If false, outputs are visible at once and offsets are committed separately. The tests must notice that.
    var usesTransactions = true
    /// Records with this key end the process as a trap does.
    var trapsAt: String?

    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        while let name = rest.popFirst() {
            guard let value = rest.popFirst() else { throw WrongOption(name) }
            switch name {
            case "--bootstrap": bootstrap = value
            case "--prefix": prefix = value
            case "--state": state = value
            case "--slot": replica = value == "dynamic" ? .makeDynamic() : .slot(Int(value) ?? 0)
            case "--threads": threads = Int(value) ?? 1
            case "--partitions": partitions = Int32(value) ?? 12
            case "--format": format = UInt8(value) ?? 1
            case "--session": sessionTimeout = .milliseconds(Int(value) ?? 6000)
            case "--admin": admin = value
            case "--transactions": usesTransactions = value == "yes"
            case "--trap": trapsAt = value
            default: throw WrongOption(name)
            }
        }
        if bootstrap.isEmpty || state.isEmpty { throw WrongOption("--bootstrap and --state are needed") }
    }
}

struct WrongOption: Error, CustomStringConvertible {
    let description: String
    init(_ text: String) { description = "wrong option: \(text)" }
}

func runLedger(_ options: LedgerOptions) throws -> ExitCode {
    try CrashNotes.install()
    let logger = Logger(level: .info, format: .text)
    let health = Health()
    let metrics = Metrics()
    var properties = ClientProperties(bootstrapServers: options.bootstrap)
    properties.set("reconnect.backoff.max.ms", "500")
    let kafka = KafkaLog(properties)
    let log: any RecordLog = options.usesTransactions ? kafka : TornLog(kafka)
    let ledger = Ledger(prefix: options.prefix, partitions: options.partitions, format: options.format)
    let memory = MemoryPlan(bytes: 64 << 20, threads: options.threads, partitions: Int(options.partitions))
    let directory = try WorkerDirectory(
        directory: options.state, group: ledger.definition.group, replica: options.replica, threads: options.threads,
        makeStores: RocksStores.sharing(
            StoreCache(bytes: memory.blockBytes, bufferBytes: memory.bufferBytes, stores: memory.stores)))
    var configuration = WorkerService.Configuration()
    configuration.replica = options.replica
    configuration.leftovers = directory.leftovers
    configuration.threads = options.threads
    configuration.sessionTimeout = options.sessionTimeout
    configuration.memory = memory
    configuration.crashNotes = directory
    configuration.aside = directory.aside
    let worker = WorkerService(
        { options.trapsAt.map { Trapping(ledger, at: $0) as any Processor } ?? ledger }, log: log,
        stores: directory.stores,
        configuration, health: health, metrics: metrics, logger: logger)
    guard let listen = ListenAddress(options.admin) else { throw WrongOption("--admin") }
    let admin = AdminServer(listen: listen, health: health, metrics: metrics, logger: logger)
    return Service([admin, worker], health: health, logger: logger).run()
}

/// Traps at every record with a certain key.
private struct Trapping: Processor {
    let ledger: Ledger
    let key: [UInt8]

    init(_ ledger: Ledger, at key: String) {
        self.ledger = ledger
        self.key = Array(key.utf8)
    }

    var definition: WorkerDefinition { ledger.definition }

    func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        if record.copyOfKey() == key { fatalError("a trap, as ordered") }
        try ledger.process(record, turn)
    }

    func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) { try ledger.fire(timer, turn) }
}
