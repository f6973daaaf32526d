// What a replay has written down about itself.

import Contract
import JSON
import Log
import Platform

/// Of the record of its plan topic, what a comparison needs.
struct ReplayMark: Sendable, Equatable {
    /// Milliseconds since 1970: what was in the log then is what the replay ends with, unless it follows.
    var begunAt: Int64?
    /// `--from`: what it read before these places is in its state and not in its topics.
    var silentBefore: [TopicPartition: NextOffset] = [:]

    static func topic(_ worker: Worker, _ name: ShadowName, _ names: Names) -> String {
        name.shadow(of: "\(names.group(worker)).plan")
    }

    /// - Parameter topic: has one partition, and the first record counts.
    static func read(_ topic: String, of log: any RecordLog, group: String) throws(ToolFault) -> ReplayMark {
        let reader: any LogReader
        do throws(LogFault) {
            reader = try log.openReader(ReaderOptions(name: "perennial-diff", group: group, topics: [topic]))
        } catch {
            throw ToolFault(.wrongUsage, error.words)
        }
        defer { reader.close(by: Deadline(after: .seconds(5))) }
        var first: [UInt8]?
        try PartitionScan(reader: reader, partition: TopicPartition(topic, 0)).run { record in
            first = first ?? record.copyOfValue()
        }
        guard let first, let mark = ReplayMark(first) else {
            throw ToolFault(
                .wrongUsage, "\(topic) holds no plan of a replay that this version reads: was it made by a later one?")
        }
        return mark
    }

    init(begunAt: Int64? = nil, silentBefore: [TopicPartition: NextOffset] = [:]) {
        self.begunAt = begunAt
        self.silentBefore = silentBefore
    }

    /// nil: it is no plan that this version knows.
    init?(_ bytes: [UInt8]) {
        guard let json = try? JSONValue.read(bytes), json["v"]?.integer == 1, let begunAt = json["begunAt"]?.integer,
            let places = json["silentBefore"]?.array
        else { return nil }
        self.begunAt = begunAt
        for place in places {
            guard let topic = place["topic"]?.string, let offset = place["offset"]?.integer,
                let partition = place["partition"]?.integer.flatMap(Int32.init(exactly:))
            else { return nil }
            silentBefore[TopicPartition(topic, partition)] = NextOffset(offset)
        }
    }
}
