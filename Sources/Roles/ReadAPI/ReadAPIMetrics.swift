// Metrics of the read API. The objects are made once; requests only add to them.

internal import Contract
internal import Follow
internal import Telemetry

struct ReadAPIMetrics: Sendable {
    static let statuses = [200, 304, 400, 401, 404, 405, 422, 503]

    /// By route, the last one for unknown paths; then by status.
    private let requests: [[Counter]]
    let seconds: Histogram

    init(_ registry: Metrics) {
        requests = (Question.Route.allCases.map(\.name) + ["none"]).map { route in
            Self.statuses.map { status in
                registry.counter(
                    "perennial_api_requests_total", help: "Requests answered, by route and HTTP status.",
                    labels: ["route": route, "code": "\(status)"])
            }
        }
        seconds = registry.histogram(
            "perennial_api_request_seconds", help: "Time from the complete request to the answer, in seconds.",
            bounds: [0.000_05, 0.000_1] + [0.000_25, 0.000_5] + Histogram.latencySeconds)
    }

    func count(_ route: Question.Route?, status: Int) {
        guard let place = Self.statuses.firstIndex(of: status) else { return }
        requests[route?.rawValue ?? Question.Route.allCases.count][place].add()
    }
}

/// Metrics of the copies of one environment.
struct ShelfMetrics: Sendable {
    /// Indexed by topic.
    let records: [Counter]
    let skipped: [Counter]
    private let keptOut: [[RecordJudge.Flaw: Counter]]
    let following: FollowCounts
    let storeBytes: Gauge
    let cells: Gauge

    init(_ registry: Metrics, _ shelf: Shelf, now: @escaping @Sendable () -> Int64) {
        let environment = shelf.names.environment.rawValue
        func byTopic(_ name: String, _ help: String) -> [Counter] {
            FollowedTopic.allCases.map {
                registry.counter(name, help: help, labels: ["environment": environment, "topic": $0.id.name])
            }
        }
        records = byTopic("perennial_api_records_total", "Records read, by topic.")
        skipped = byTopic("perennial_api_records_skipped_total", "Records of types that this build does not know.")
        keptOut = FollowedTopic.allCases.map { topic in
            Dictionary(
                uniqueKeysWithValues: RecordJudge.Flaw.allCases.map { flaw in
                    let counter = registry.counter(
                        "perennial_api_records_kept_out_total", help: "Records that cannot be used in an answer.",
                        labels: ["environment": environment, "topic": topic.id.name, "cause": flaw.rawValue])
                    return (flaw, counter)
                })
        }
        func made(_ name: String, _ help: String) -> Gauge {
            registry.gauge(name, help: help, labels: ["environment": environment])
        }
        following = FollowCounts(
            remaining: made(
                "perennial_api_remaining_records", "Offsets between the positions read and the ends seen last."),
            paused: made("perennial_api_paused_partitions", "Partitions that wait for a later build of Perennial."),
            wipes: registry.counter(
                "perennial_api_store_wipes_total", help: "Local copies that could not be used and were rebuilt.",
                labels: ["environment": environment]))
        storeBytes = made("perennial_api_store_bytes", "Approximate size of the local copies on disk, in bytes.")
        cells = made("perennial_api_cells", "Days and kinds of rows with churn totals in memory.")
        for worker in WorkerName.allCases {
            registry.gauge(
                "perennial_api_source_behind_seconds",
                help:
                    "Age of the notifications that are not in the answers yet, in seconds, in the worst partition.",
                labels: ["environment": environment, "worker": worker.rawValue]
            ) { [pace = shelf.pace] in
                pace.farthestBehind(worker, at: now()).map { Double($0) / 1000 } ?? .nan
            }
        }
    }

    func keptOut(_ topic: FollowedTopic, _ flaw: RecordJudge.Flaw) { keptOut[topic.rawValue][flaw]?.add() }
}
