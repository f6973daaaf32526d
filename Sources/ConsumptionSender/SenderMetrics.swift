// What the sender counts.

internal import Follow
internal import Telemetry

struct SenderMetrics: Sendable {
    enum Result: String, CaseIterable {
        case sent, retry, unauthorized, limited, failed, unanswered, withdrawn
    }

    private let attempts: [Result: Counter]
    let seconds: Histogram
    let open: Gauge
    let clockAhead: Gauge
    let troubles: [SenderTroubles.Cause: Gauge]
    let follow: FollowCounts

    init(_ metrics: Metrics) {
        attempts = Dictionary(
            uniqueKeysWithValues: Result.allCases.map { result in
                let counter = metrics.counter(
                    "perennial_consumption_attempts_total",
                    help:
                        "Attempts to give Apple an answer, by what came of them. Of those that were withdrawn nothing was sent.",
                    labels: ["result": result.rawValue])
                return (result, counter)
            })
        seconds = metrics.histogram(
            "perennial_consumption_attempt_seconds", help: "From the beginning of an attempt to its answer.",
            bounds: Histogram.latencySeconds)
        open = metrics.gauge(
            "perennial_consumption_open_answers", help: "Answers that this process has to send, or to send again.")
        clockAhead = metrics.gauge(
            "perennial_consumption_clock_ahead_seconds",
            help:
                "How far this host's clock is ahead of Apple's, by the last answer. Apple refuses tokens of other times."
        )
        troubles = Dictionary(
            uniqueKeysWithValues: SenderTroubles.Cause.allCases.map { cause in
                let gauge = metrics.gauge(
                    "perennial_consumption_sender_troubles",
                    help: "What keeps answers from reaching Apple, by cause; for how many apps.",
                    labels: ["cause": cause.rawValue])
                return (cause, gauge)
            })
        follow = FollowCounts(
            remaining: metrics.gauge(
                "perennial_consumption_sender_remaining_records",
                help: "Offsets of consumption that the sender has still to read."),
            paused: metrics.gauge(
                "perennial_consumption_sender_paused_partitions",
                help: "Partitions whose answers wait for a later build of Perennial."),
            wipes: metrics.counter(
                "perennial_consumption_sender_restarts_total",
                help: "Partitions that the sender had to read from their beginning again."))
    }

    func count(_ result: Result) { attempts[result]?.add() }
}
