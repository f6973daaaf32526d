// Checks records of usage, and writes them as `POST /usage` does.

import Cluster
import CommandLine
import Configuration
import Contract
import Ingest
import JSON
import Kafka
import Log
import Platform
import Records

/// One call of the command.
struct UsagePut {
    /// At least the longest body that `POST /usage` accepts by default.
    private static let limitLineBytes = 262_144
    /// Standard input cannot be read twice, so it is kept in memory: about a million records.
    private static let limitStandardInputBytes = 256 << 20
    /// More error messages would not help.
    private static let limitTold = 20

    let options: UsageOptions
    let configuration: Configuration
    let output: Output

    /// The result of the first pass.
    private struct Survey {
        var right: [Contract.Environment: Int] = [:]
        var wrong = 0

        var environments: [Contract.Environment] { Contract.Environment.allCases.filter { right[$0] != nil } }
        var count: Int { right.values.reduce(0, +) }
    }

    func run() throws(ToolFault) -> ExitCode {
        // Read once for both passes.
        let text = try textInMemory()
        let survey = try survey(text)
        if survey.wrong > 0 {
            let wrong =
                "\(survey.wrong) of \(survey.wrong + survey.count) records \(survey.wrong == 1 ? "is" : "are") wrong"
            guard options.skipsWrong else {
                throw ToolFault(.wrongUsage, "\(wrong); nothing is written (--skip-wrong writes the others)")
            }
            say("\(wrong) and left out")
            if survey.count == 0 { return .no }
        }
        guard !options.isDryRun, survey.count > 0 else {
            say("\(records(survey.count)) correct; nothing is written")
            return .done
        }
        try requireTopics(survey)
        try write(text, survey)
        for environment in survey.environments {
            say("\(records(survey.right[environment] ?? 0)) written to \(topic(environment))")
        }
        return .done
    }

    private func records(_ count: Int) -> String { count == 1 ? "1 record is" : "\(count) records are" }

    private func say(_ words: String) { output.message("perennial usage: \(words)") }

    // MARK: Reading

    /// nil: the records are in a file, which is read twice.
    private func textInMemory() throws(ToolFault) -> [UInt8]? {
        switch options.input {
        case .record(let bytes): bytes
        case .file: nil
        case .standardInput:
            try reading { () throws(FileFault) in try readStandardInput(limitBytes: Self.limitStandardInputBytes) }
        }
    }

    private func lines(_ text: [UInt8]?) throws(ToolFault) -> LineReader {
        try reading { () throws(FileFault) in
            if case .file(let path) = options.input {
                return try LineReader(path: path, limitLineBytes: Self.limitLineBytes)
            }
            return LineReader(text: text ?? [], limitLineBytes: Self.limitLineBytes)
        }
    }

    private func reading<Answer: ~Copyable>(_ body: () throws(FileFault) -> Answer) throws(ToolFault) -> Answer {
        do throws(FileFault) {
            return try body()
        } catch {
            throw ToolFault(.wrongUsage, "\(error)")
        }
    }

    /// Calls `take` with every correct record, and `refuse` with every error and its line number.
    private func readAll(
        _ text: [UInt8]?, doing words: String, take: (UsageRecord) throws(ToolFault) -> Void,
        refuse: (Int, String) -> Void
    ) throws(ToolFault) {
        var progress = ProgressBar.standardError()
        // Also after an error, so that its message begins on an empty line.
        defer { progress.end() }
        var limits = JSONLimits()
        limits.bytes = Self.limitLineBytes
        // The rules of POST /usage.
        limits.depth = 16
        var json = JSONReader(limits: limits)
        var lines = try lines(text)
        var number = 0
        while true {
            let next = try reading { () throws(FileFault) in try lines.next() }
            guard let next else { return }
            number += 1
            progress.update(lines.share) { "\(words), line \(number)" }
            guard case .bytes(let line) = next else {
                refuse(number, "it has more than \(Self.limitLineBytes) bytes")
                continue
            }
            if line.allSatisfy({ " \t\r".utf8.contains($0) }) { continue }
            let record: UsageRecord
            do {
                record = try UsageRecord(json.read(line))
            } catch let fault as UsageRecord.Fault {
                refuse(number, fault.reason)
                continue
            } catch {
                refuse(number, Self.words(error))
                continue
            }
            try take(record)
        }
    }

    private static func words(_ error: any Error) -> String {
        guard let fault = error as? JSONFault else { return "\(error)" }
        let place = fault.place.map { "column \($0.column): " } ?? ""
        return place + fault.problem + "; each line must be one JSON record"
    }

    private func survey(_ text: [UInt8]?) throws(ToolFault) -> Survey {
        var survey = Survey()
        // Printed at the end, because a message would be mixed with the progress bar.
        var told: [String] = []
        try readAll(
            text, doing: "checking",
            take: { record in survey.right[record.environment ?? configuration.environment, default: 0] += 1 },
            refuse: { number, reason in
                survey.wrong += 1
                if told.count < Self.limitTold { told.append(place(ofLine: number) + reason) }
            })
        for line in told { say(line) }
        if survey.wrong > told.count { say("\(survey.wrong - told.count) more lines are wrong") }
        return survey
    }

    private func place(ofLine number: Int) -> String {
        switch options.input {
        case .record: ""
        case .file(let path): "\(path) line \(number): "
        case .standardInput: "line \(number): "
        }
    }

    // MARK: Writing

    private func topic(_ environment: Contract.Environment) -> String {
        Names(prefix: configuration.topicPlan.prefix, environment: environment).topic(.usage)
    }

    private func requireTopics(_ survey: Survey) throws(ToolFault) {
        let present = try ClusterAccess.cluster(configuration, as: "usage").topics.map(\.name)
        let missing = survey.environments.map(topic).first { !present.contains($0) }
        if let missing { throw ToolFault.missing(topic: missing) }
    }

    private func write(_ text: [UInt8]?, _ survey: Survey) throws(ToolFault) {
        let factory = RecordFactory(app: "perennial/\(PerennialVersion.text)", archivesSignedPayloads: false)
        let publisher = try ToolPublisher(configuration, as: .usage, topics: survey.environments.map(topic))
        defer { publisher.close() }
        let now = WallClock.milliseconds()
        var left = survey.right
        var hasChanged = false
        try readAll(
            text, doing: "writing",
            take: { usage throws(ToolFault) in
                let record = factory.record(of: usage, orIn: configuration.environment, receivedDate: now)
                // Writes only as many records as were counted: a file that grows meanwhile may name a topic that was not checked.
                guard let count = left[record.environment], count > 0 else {
                    hasChanged = true
                    return
                }
                left[record.environment] = count - 1
                publisher.publish(placed(record))
                if let fault = publisher.fault { throw fault }
            },
            refuse: { _, _ in })
        try publisher.finish()
        guard !hasChanged, left.values.allSatisfy({ $0 == 0 }) else {
            throw ToolFault(
                .gaveUp, "the file changed while it was read; its correct records are written. Run the command again")
        }
    }

    private func placed(_ record: OutgoingRecord) -> ToolRecord {
        ToolRecord(
            topic: topic(record.environment),
            partition: Partitioner.partition(of: record.key, count: Int32(configuration.topicPlan.partitions)),
            key: record.key, value: record.value, headers: record.headers, timestamp: record.timestamp)
    }
}
