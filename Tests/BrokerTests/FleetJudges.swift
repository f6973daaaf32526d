// Judges of a fleet: what the consumption worker said, and what the processes needed.

import JSON
import KafkaTestKit
import PlainChurn
import Platform
import Synchronization
import Testing

/// Judges refund requests. For most, Apple's twelve hours are over when they come, so each has one fate: it is recorded as
/// requested and as expired, once, and nothing is decided or sent. The others are recorded as requested once.
struct ExpiredJudge: Sendable {
    /// One record of the topic `consumption`.
    struct Line: Sendable {
        let id: String
        let kind: String
    }

    private let requests: Set<String>
    /// Apple would still take an answer when the run began. Nobody listens, so none is sent.
    private let recent: Set<String>

    /// - Parameters:
    ///   - truth: the lines of the simulator.
    ///   - began: before the first notification was posted.
    init(truth: [[UInt8]], began: Int64) throws {
        let all = try truth.compactMap { try RefundTruth($0) }
        self.init(
            requests: Set(all.filter { $0.deadline < began }.map(\.uuid)),
            recent: Set(all.filter { $0.deadline >= began }.map(\.uuid)))
    }

    init(requests: Set<String>, recent: Set<String> = []) {
        self.requests = requests
        self.recent = recent
    }

    var count: Int { requests.count }

    /// Empty: nothing is wrong.
    func wrong(_ lines: [Line]) -> [String] {
        let kinds = Dictionary(grouping: lines, by: \.id).mapValues { $0.map(\.kind).filter { $0 != "outcome" } }
        let old: [String] = requests.sorted().compactMap { id in
            kinds[id] == ["requested", "expired"] ? nil : "\(id): \(kinds[id] ?? []), not requested and expired once"
        }
        let young: [String] = recent.sorted().compactMap { id in
            let found = kinds[id] ?? []
            let (asked, expired) = (found.count { $0 == "requested" }, found.count { $0 == "expired" })
            let isWhole = asked == 1 && expired <= 1 && !found.contains("sent")
            return isWhole ? nil : "\(id): \(found), not requested once"
        }
        let strange = kinds.keys.sorted().filter { !requests.contains($0) && !recent.contains($0) && kinds[$0] != [] }
        return old + young + strange.map { "\($0): \(kinds[$0] ?? []), but nobody has asked for it" }
    }
}

/// Ingest writes ticks among the notifications, to move the clocks of the workers.
func namesTick(_ schema: String?) -> Bool { schema?.hasPrefix("tick/") ?? false }

/// All notifications that were ever stored, read once at the end: there are too many to keep.
struct HeardNotifications: Sendable {
    var judge: PlainJudge
    var uuids: Set<String> = []
    var count = 0

    static func all(_ installation: Installation, zone: String, within limit: Duration) async throws -> Self {
        let heard = Mutex(HeardNotifications(judge: PlainJudge(zone: zone)))
        _ = try await installation.broker.read(installation.topic("notifications"), within: limit) { record in
            let whole = WholeRecord(record)
            heard.withLock { heard in
                heard.judge.hear(
                    partition: whole.partition, timestamp: whole.timestamp ?? 0, key: whole.key, value: whole.value)
                guard !namesTick(whole.header("schema")), let id = whole.header("id") else { return }
                heard.uuids.insert(id)
                heard.count += 1
            }
        }
        return heard.withLock { $0 }
    }
}

extension Installation {
    func consumptionLines(within limit: Duration) async throws -> (lines: [ExpiredJudge.Line], repeats: Int) {
        let records = try await read("consumption", within: limit)
        let ids = records.compactMap { $0.header("id") }
        let lines = try records.map { record in
            let json = try JSONValue.read(record.value)
            return ExpiredJudge.Line(id: json["id"]?.string ?? "", kind: json["kind"]?.string ?? "")
        }
        return (lines, records.count - Set(ids).count)
    }
}

/// What the processes may need.
enum FleetLimits {
    /// A worker has at most this much besides `state.cache.bytes` (docs/operate/run-workers.md).
    static let besidesCache = 100 << 20
    /// Until caches and buffers are full, and Java has compiled what the brokers do all the time.
    static let warmUp = 120.0
    /// In shorter runs the state still grows towards the size of its cache.
    static let secondsToJudgeGrowth = 600
    /// Of the pace that was asked for, from the end of the warm-up to the last notification.
    static let leastPace = 0.8

    /// Long enough for each trouble of a network, because these come first.
    static let secondsForAllNetworks = 600
    static let networkTroubles: [ManyCause] = [.cut, .deaf, .mute, .slow, .brokerCut, .brokerMute]

    /// What a run of this length must have seen and has not.
    static func unseen(_ steps: [ManyCause: Int], seconds: Int) -> [ManyCause] {
        seconds < secondsForAllNetworks ? [] : networkTroubles.filter { steps[$0, default: 0] == 0 }
    }

    /// Empty: nothing is wrong.
    static func faults(of meter: FleetMeter, workers: [String], judgesGrowth: Bool) -> [String] {
        var faults: [String] = []
        for name in workers where meter.most(name) > ManyCrew.cacheBytes + besidesCache {
            faults.append("\(name) had \(meter.most(name) >> 20) MiB resident, more than its cache and 100 MiB")
        }
        for name in workers + ["ingest"] where judgesGrowth {
            guard let growth = meter.growth(name, after: warmUp) else {
                faults.append("\(name) was not measured")
                continue
            }
            if !FleetMeter.isFlat(growth) {
                faults.append("\(name) grew from \(growth.early >> 20) to \(growth.late >> 20) MiB")
            }
        }
        return faults
    }
}
