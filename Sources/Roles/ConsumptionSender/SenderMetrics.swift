// Metrics of the sender.

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
                        "Attempts to send Apple an answer, by result. For withdrawn ones nothing was sent.",
                    labels: ["result": result.rawValue])
                return (result, counter)
            })
        seconds = metrics.histogram(
            "perennial_consumption_attempt_seconds", help: "Seconds from the start of an attempt to Apple's response.",
            bounds: Histogram.latencySeconds)
        open = metrics.gauge(
            "perennial_consumption_open_answers", help: "Answers that this process has to send or to retry.")
        clockAhead = metrics.gauge(
            "perennial_consumption_clock_ahead_seconds",
            help:
                "Seconds by which this host's clock is ahead of Apple's. Apple refuses tokens from a wrong clock."
        )
        troubles = Dictionary(
            uniqueKeysWithValues: SenderTroubles.Cause.allCases.map { cause in
                let gauge = metrics.gauge(
                    "perennial_consumption_sender_troubles",
                    help: "Number of apps whose answers cannot be sent, by cause.",
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
                help: "Partitions that the sender had to read again from their beginning."))
    }

    func count(_ result: Result) { attempts[result]?.add() }
}
