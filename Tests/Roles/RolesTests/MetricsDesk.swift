import Churn
import Configuration
import Contract
import Entitlements
import Log
import MemoryLog
import Platform
import Settings

@testable import Cluster
@testable import CommandLine
@testable import Roles
@testable import Tools

/// Cells in memory, and `inspect metrics` on them.
final class MetricsDesk {
    static let partitions: Int32 = 3
    static let month = ["--from", "2026-11-01", "--to", "2026-12-01"]

    let names = Names(prefix: TopicPrefix("appstore")!, environment: .production)
    let log = MemoryLog(clock: .manual())
    var topic: String { names.topic(.churnCells) }
    private let writer: any LogWriter
    /// The clock of the records that are written next.
    var asOf = at("2026-11-28T10:00")
    /// The header of the records that are written next.
    var rules: String?

    init() throws {
        let soon = Deadline(after: .seconds(60))
        try log.create(
            [NewTopic(names.topic(.churnCells), partitions: Self.partitions, isCompacted: true)], by: soon)
        writer = try log.openWriter(WriterOptions(name: "test", topics: [names.topic(.churnCells)]))
    }

    func key(_ day: String, _ product: String, _ currency: String, _ partition: Int32) -> String {
        "\(partition)|\(day)|com.example.app|\(product)|BILLED_UPFRONT|USA|\(currency)"
    }

    func cell(
        _ day: String, _ counts: String, _ money: String = "", product: String = "pro.monthly",
        currency: String = "USD", partition: Int32 = 0
    ) throws {
        let value = """
            {"v":1,"partition":\(partition),"day":"\(day)","bundleId":"com.example.app","productId":"\(product)",\
            "billingPlan":"BILLED_UPFRONT","storefront":"USA","currency":"\(currency)","counts":{\(counts)},\
            "money":{\(money)},"asOf":\(asOf),"offset":1}
            """.replacing("'", with: "\"")
        try write(key(day, product, currency, partition), value, partition: partition)
    }

    func write(_ key: String, _ value: String?, partition: Int32 = 0, version: Int = 1) throws {
        let batch = OutputBatch()
        batch.append(
            topic: 0, partition: partition, timestamp: asOf, key: Array(key.utf8), value: value.map { Array($0.utf8) },
            headers: [RecordHeader("schema", "churn-cell/\(version)")]
                + (rules.map { [RecordHeader("rules", $0)] } ?? []))
        _ = try writer.append(batch, by: Deadline(after: .seconds(60)))
    }

    /// The month of docs/how-to/read-churn-numbers.md: two products and two currencies, most of it decided long ago.
    func tellStory() throws {
        try cell(
            "2026-10-01", "'activeDelta':1180,'graceDelta':20,'retryDelta':35,'trialDelta':60",
            "'mrrNew':11200000,'atRiskDelta':180000")
        try cell(
            "2026-10-01", "'activeDelta':210,'graceDelta':4,'retryDelta':6", "'mrrNew':1740000,'atRiskDelta':32000",
            currency: "EUR", partition: 1)
        try cell(
            "2026-11-03",
            "'started':52,'renewed':610,'charged':668,'chargedRefunded':4,'failed':44,'graceEntered':40,"
                + "'recoveredWithin1':9,'recoveredWithin3':19,'recoveredWithin7':25,'recoveredWithin16':30,"
                + "'recoveredWithin28':31,'trials':80,'trialsConverted':44,'trialsEnded':36,"
                + "'activeDelta':30,'graceDelta':4,'trialDelta':-2",
            "'revenue':6673320,'mrrNew':519480,'chargedRefundedAmount':39960,'refundedAmount':39960,'atRiskDelta':31000",
            partition: 2)
        try cell(
            "2026-11-12",
            "'graceRecovered':27,'retryRecovered':3,'retryEntered':12,'retryLost':9,'retryCancelled':2,'retryOpen':3,"
                + "'lapsedVoluntary':38,'lapsedBilling':12,'lapsedPrice':2,'lapsedRefund':4,'regained':6,"
                + "'renewalTurnedOff':51,'renewalTurnedOn':7,'refunded':4,'refundRequested':6,'refundDeclined':2,"
                + "'activeDelta':-40,'graceDelta':-8,'retryDelta':4",
            "'mrrExpansion':48000,'mrrContraction':-21000,'mrrVoluntary':-379620,'mrrBilling':-119880,'mrrPrice':-19980,"
                + "'mrrRefund':-39960,'mrrRecovery':29970,'mrrReactivation':29970,'recoveredRevenue':299700,"
                + "'atRiskDelta':-41000")
        try cell(
            "2026-11-20", "'started':9,'charged':9,'activeDelta':9,'lapsedVoluntary':5",
            "'revenue':80910,'mrrNew':80910,"
                + "'mrrVoluntary':-41950", currency: "EUR", partition: 1)
        try cell(
            "2026-11-27",
            "'failed':6,'failedOpen':4,'graceEntered':6,'recoveredWithin1':2,'renewed':30,'charged':30,'trials':5,"
                + "'trialsOpen':5,'graceDelta':4,'activeDelta':-4,'trialDelta':5", "'revenue':299700")
        try cell(
            "2026-11-28", "'started':2,'charged':2,'activeDelta':2", "'revenue':19980,'mrrNew':19980", partition: 2)
    }

    func inspect(_ arguments: [String], change: (inout InspectRun) -> Void = { _ in }) throws -> InspectDesk.Answer {
        let recorder = Recorder()
        let invocation = Invocation(
            ParsedArguments(["metrics"] + arguments, options: Command.inspect.options), of: .inspect,
            output: recorder.output, program: .standard)
        var code = ExitCode.done
        do throws(ToolFault) {
            var run = InspectRun(
                query: try InspectQuery(invocation, now: at("2026-11-28T12:00")), names: names,
                partitions: Self.partitions,
                rules: EntitlementRules(apps: [], leeway: 0, environment: .production), log: log,
                output: recorder.output, now: at("2026-11-28T12:00"))
            run.partitionCounts[names.topic(.churnCells)] = Self.partitions
            change(&run)
            code = try run.run()
        } catch {
            for line in error.lines { recorder.output.message("perennial inspect: \(line)") }
            code = error.code
        }
        return InspectDesk.Answer(code: code, lines: recorder.data, messages: recorder.messages)
    }
}
