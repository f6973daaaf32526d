// The figures of `perennial size`: each is measured, and compared with the one that the command uses.

import Contract
import Glibc
import IngestTestKit
import Kafka
import KafkaTestKit
import Log
import Platform
import Sizing

/// A figure about bytes or counts is the same on every machine. One about time is not: it may differ by this factor.
private let exactFactor = 1.1
private let timeFactor = 1.5

/// What the parts of the row have measured so far.
struct SizingFigures {
    private(set) var values: [FigureName: Double] = [:]

    subscript(_ name: FigureName) -> Double {
        get { values[name] ?? .nan }
        set { values[name] = newValue }
    }
}

func measureSizing(_ report: inout Report) async throws {
    guard BrokerSource.current.canStartBrokers else {
        printMessage("bench: \(BrokerSource.privateSkipLine)")
        exitProcess(2)
    }
    var options = KafkaOptions()
    // All records are counted, also those of a simulated year: so nothing is compacted, and no segment is closed for its age.
    options.java = .usual
    options.properties = ["log.cleaner.enable": "false", "log.roll.hours": "876000"]
    let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
    var figures = SizingFigures()
    let stage = SizingStage(cluster)
    try await measureMix(stage, &figures, report)
    try await measureSizedIngest(stage, &figures, report)
    try await measureSizedWorkers(stage, &figures, report)
    figures[.brokerMemory] = Double(try cluster.broker.peakMemoryBytes())
    await cluster.close()
    try await measureDisk(&figures)
    try await measureRequestsAndQuestions(&figures)
    compare(figures, &report)
}

private func compare(_ figures: SizingFigures, _ report: inout Report) {
    report.note(
        "factor: the greater of measured/used and used/measured; figures in use are of \(MeasuredFigures.measured.date)"
    )
    for name in FigureName.allCases {
        let measured = figures[name]
        guard measured.isFinite, measured > 0 else {
            report.fail("\(name.rawValue) has no value: \(measured)")
            continue
        }
        guard let used = MeasuredFigures.measured.figures[name] else {
            report.fail("\(name.rawValue) is not in MeasuredFigures.swift")
            continue
        }
        let factor = used.value > 0 ? max(measured / used.value, used.value / measured) : .infinity
        guard factor < 1e6 else {
            report.fail("\(name.rawValue): measured \(measured), used \(used.value)")
            continue
        }
        report.judge(
            "sizing \(name.rawValue)", "measured \(short(measured)) \(used.unit), used \(short(used.value))",
            ratio: factor,
            .atMost(name.isExact ? exactFactor : timeFactor))
    }
    report.note("in the form of MeasuredFigures.swift:")
    for name in FigureName.allCases {
        let words = MeasuredFigures.measured.figures[name]
        report.note(
            ".\(name.rawValue): MeasuredFigure(\(short(figures[name])), \"\(words?.unit ?? "")\", \"\(words?.part ?? "")\"),"
        )
    }
}

extension FigureName {
    fileprivate var isExact: Bool {
        (rawValue.contains("Bytes") || rawValue.hasSuffix("PerNotification") || rawValue.hasSuffix("PerRenewal")
            || rawValue.hasSuffix("PerRequest")) && !isTime
    }

    /// The only figures with this ending that are microseconds.
    private var isTime: Bool {
        switch self {
        case .ingestPerNotification, .ingestPerArchivedNotification, .apiPerNotification, .brokerPerNotification,
            .brokerPerArchivedNotification:
            true
        default: false
        }
    }
}

/// Three digits that count, and no exponent.
func short(_ value: Double) -> String {
    guard value.isFinite, value > 0 else { return "\(value)" }
    if value >= 1000 { return "\(Int(value.rounded()))" }
    let digits = max(0, 3 - Int(log10(value).rounded(.up)))
    let scale = pow(10, Double(digits))
    return "\((value * scale).rounded() / scale)"
}

// MARK: The broker and the processes of the product

/// One broker, and installations on it that differ in the prefix of their topics.
struct SizingStage: Sendable {
    let cluster: KafkaCluster
    let program: String
    let bootstrap: String

    init(_ cluster: KafkaCluster) {
        self.cluster = cluster
        bootstrap = cluster.bootstrapServers
        program = (try? productPath("perennial")) ?? "perennial"
    }

    func names(_ name: String) -> Names {
        Names(prefix: TopicPrefix("bench-size-\(name)-\(getpid())")!, environment: .production)
    }

    func settings(_ names: Names) -> [String] {
        [
            "--kafka.bootstrap.servers", bootstrap, "--topic.prefix", "\(names.prefix)", "--partitions",
            "\(workerPartitions)",
        ]
    }

    func createTopics(_ names: Names) async throws {
        let arguments = ["topics", "apply", "--topics.replication.factor", "1", "--topics.min.insync.replicas", "1"]
        try await waitUntil("the topics of \(names.prefix)", within: .seconds(60)) {
            try await run(program, arguments + settings(names), environment: .only([:])).code == 0
        }
    }

    func start(_ role: String, _ names: Names, _ arguments: [String]) throws -> ChildProcess {
        try ChildProcess(
            program,
            [role, "--admin.listen", "127.0.0.1:0", "--log.format", "text"] + settings(names) + arguments,
            environment: .only([:]), mergesErrors: true)
    }

    /// Until a worker has committed everything that is in `notifications`.
    func waitUntilRead(_ names: Names, by worker: WorkerName, _ process: ChildProcess) async throws {
        let topic = names.topic(.notifications)
        let partitions = (0..<workerPartitions).map { TopicPartition(topic, $0) }
        let group = "\(names.prefix).\(names.environment.rawValue).\(worker.rawValue)"
        let bootstrap = bootstrap
        let ends = try await blocking {
            let reader = try KafkaLog(ClientProperties(bootstrapServers: bootstrap)).openReader(
                ReaderOptions(name: "bench", group: "bench", topics: [topic]))
            defer { reader.close(by: Deadline(after: .seconds(5))) }
            return try reader.ends(.committed, of: partitions, by: Deadline(after: .seconds(10)))
        }
        try await waitUntil("\(group) is at the end", within: .seconds(300)) {
            guard process.isRunning else {
                throw NotInTime("a worker that runs", limit: .zero, detail: process.lastLines(10))
            }
            let positions = try await blocking {
                let admin = try Admin(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
                defer { admin.close(by: Deadline(after: .seconds(5))) }
                return (try? admin.currentOffsets(ofGroup: group, by: Deadline(after: .seconds(10)))) ?? [:]
            }
            return partitions.allSatisfy { (positions[$0]?.value ?? 0) >= (ends[$0]?.value ?? 0) }
        }
    }
}

/// Processor time of a process in seconds, of all its threads that still run.
func threadSeconds(_ process: Int32) throws -> Double {
    let folder = "/proc/\(process)/task"
    let nanoseconds = fileNames(folder).reduce(0.0) { sum, thread in
        // A thread may end between the two calls.
        guard let text = try? readFile("\(folder)/\(thread)/schedstat", limitBytes: 1 << 12) else { return sum }
        return sum + (Double(String(decoding: text, as: UTF8.self).prefix { $0 != " " }) ?? 0)
    }
    guard nanoseconds > 0 else { throw NotInTime("schedstat of process \(process)", limit: .zero) }
    return nanoseconds / 1e9
}

func fileNames(_ folder: String) -> [String] {
    guard let stream = opendir(folder) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { place in
            place.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if !name.hasPrefix(".") { names.append(name) }
    }
    return names
}
