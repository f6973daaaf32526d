// What ingest counts. The objects are made once; requests only add.

import AppStore
import Telemetry

struct IngestMetrics: Sendable {
    /// Ways of a request to end that are neither a reason code nor a failure of Kafka.
    enum Ending: String, CaseIterable {
        case accepted
        /// Acknowledged by Kafka some hours ago at the most: answered 200 and not written again.
        case repeated
        case forbidden
        case notFound = "not_found"
        case methodNotAllowed = "method_not_allowed"
        case unauthorized
        case mediaType = "media_type"
        /// `POST /usage`: no JSON, or a record that is none.
        case invalid
        /// Whether its certificates are revoked was not to be learnt in time.
        case noVerdict = "no_verdict"
        /// Its turn to be verified did not come in time.
        case tooBusy = "too_busy"
    }

    private let requests: [String: Counter]
    private let rejectedKept: [RejectionReason: Counter]
    private let rejectedCounted: [RejectionReason: Counter]
    private let alarms: [Bool: [RejectionReason: Counter]]
    private let registry: Metrics
    let seconds: Histogram
    let bodyBytes: Counter
    let age: Histogram
    let usageRecords: Counter
    let usageIgnored: Counter

    init(_ registry: Metrics) {
        self.registry = registry
        let outcomes =
            Ending.allCases.map(\.rawValue) + RejectionReason.allCases.map(\.rawValue)
            + PublishFailure.allCases.map(\.rawValue)
        requests = Dictionary(
            uniqueKeysWithValues: outcomes.map { outcome in
                let counter = registry.counter(
                    "perennial_ingest_requests_total",
                    help:
                        "Requests that the endpoint answered, by outcome; what the server itself refused is in "
                        + "perennial_http_refused_total.",
                    labels: ["outcome": outcome])
                return (outcome, counter)
            })
        func byReason(
            _ name: String, _ help: String, _ label: String, _ value: Bool
        ) -> [RejectionReason: Counter] {
            Dictionary(
                uniqueKeysWithValues: RejectionReason.allCases.map { reason in
                    let labels = ["reason": reason.rawValue, label: "\(value)"]
                    return (reason, registry.counter(name, help: help, labels: labels))
                })
        }
        let help = "Bodies that were refused, by whether Kafka acknowledged them in the topic rejected in time."
        rejectedKept = byReason("perennial_ingest_rejected_total", help, "kept", true)
        rejectedCounted = byReason("perennial_ingest_rejected_total", help, "kept", false)
        let alarmHelp =
            "What somebody should look at: signed by Apple and not taken, or sent from Apple's network (from_apple) and "
            + "not trusted."
        alarms = Dictionary(
            uniqueKeysWithValues: [true, false].map { fromApple in
                (fromApple, byReason("perennial_ingest_alarms_total", alarmHelp, "from_apple", fromApple))
            })
        seconds = registry.histogram(
            "perennial_ingest_request_seconds", help: "From the whole body to the answer.",
            bounds: Histogram.latencySeconds)
        bodyBytes = registry.counter("perennial_ingest_body_bytes_total", help: "Bytes of bodies that were judged.")
        age = registry.histogram(
            "perennial_ingest_notification_age_seconds", help: "Age of verified notifications on arrival.",
            // A second, to the last repetition after 157 hours, to the 180 days of a backfill.
            bounds: [1, 5, 15, 60, 300, 1800, 3600, 4 * 3600, 14 * 3600, 86_400, 4 * 86_400, 7 * 86_400, 180 * 86_400])
        usageIgnored = registry.counter(
            "perennial_ingest_usage_ignored_total",
            help: "Members of records of usage that mean nothing here; the answer has named them.")
        usageRecords = registry.counter("perennial_ingest_usage_records_total", help: "Records of usage taken.")
    }

    func count(_ ending: Ending) { requests[ending.rawValue]?.add() }
    func count(_ reason: RejectionReason) { requests[reason.rawValue]?.add() }
    func count(_ failure: PublishFailure) { requests[failure.rawValue]?.add() }
    func countRejected(_ reason: RejectionReason, kept: Bool) {
        (kept ? rejectedKept : rejectedCounted)[reason]?.add()
    }
    func alarm(_ reason: RejectionReason, fromApple: Bool) { alarms[fromApple]?[reason]?.add() }

    /// Few notifications have flags, and the verifier knows a handful of them.
    func count(flags: [String]) {
        for flag in flags {
            registry.counter(
                "perennial_ingest_flags_total", help: "Peculiarities of notifications that were taken.",
                labels: ["flag": flag]
            ).add()
        }
    }
}
