// Metrics of ingest. The objects are made once; requests only add to them.

import AppStore
import Contract
import Synchronization
import Telemetry

final class IngestMetrics: Sendable {
    /// Outcomes of a request that are neither a reason code nor a failure of Kafka.
    enum Ending: String, CaseIterable {
        case accepted
        /// Kafka acknowledged the same notification a few hours ago at most: answered 200 and not written again.
        case repeated
        case forbidden
        case notFound = "not_found"
        case methodNotAllowed = "method_not_allowed"
        case unauthorized
        case mediaType = "media_type"
        /// `POST /usage`: the body is not JSON, or a record is not valid.
        case invalid
        /// The revocation status of its certificates could not be determined in time.
        case noVerdict = "no_verdict"
        /// It could not be verified in time, because too many others were waiting.
        case tooBusy = "too_busy"
    }

    /// Environment and app of a verified notification. For other requests they are unknown, and each outcome has one
    /// counter.
    private struct Origin: Hashable {
        let outcome: String
        let environment: Contract.Environment?
        let bundle: String
    }

    private struct Origins {
        var counters: [Origin: Counter] = [:]
        var strangers: Set<String> = []
        /// The apps in the settings.
        var bundles: Set<String> = []
    }

    /// At most this many apps that are not in the settings have series of their own: others could create any number.
    private static let limitStrangers = 20
    private static let otherBundles = "other"

    private let requests: [String: Counter]
    private let origins = Mutex(Origins())
    private let rejectedKept: [RejectionReason: Counter]
    private let rejectedCounted: [RejectionReason: Counter]
    private let alarms: [Bool: [RejectionReason: Counter]]
    private let registry: Metrics
    let seconds: Histogram
    let bodyBytes: Counter
    let age: Histogram
    let usageRecords: Counter
    let usageIgnored: Counter

    /// - Parameter bundles: the apps in the settings.
    init(_ registry: Metrics, bundles: [String]) {
        self.registry = registry
        let outcomes =
            Ending.allCases.map(\.rawValue) + RejectionReason.allCases.map(\.rawValue)
            + PublishFailure.allCases.map(\.rawValue)
        requests = Dictionary(
            uniqueKeysWithValues: outcomes.map { outcome in
                (outcome, Self.requests(registry, outcome, environment: "", bundle: ""))
            })
        func byReason(
            _ name: String, _ help: String, _ label: String, _ value: Bool
        ) -> [RejectionReason: Counter] {
            Dictionary(
                uniqueKeysWithValues: RejectionReason.allCases.map { reason in
                    let labels: KeyValuePairs = ["reason": reason.rawValue, label: "\(value)"]
                    return (reason, registry.counter(name, help: help, labels: labels))
                })
        }
        let help = "Refused bodies, by reason and by whether Kafka acknowledged them in the topic rejected in time."
        rejectedKept = byReason("perennial_ingest_rejected_total", help, "kept", true)
        rejectedCounted = byReason("perennial_ingest_rejected_total", help, "kept", false)
        let alarmHelp =
            "Bodies to look at: signed by Apple but not accepted, or sent from Apple's network (from_apple) but "
            + "not trusted."
        alarms = Dictionary(
            uniqueKeysWithValues: [true, false].map { fromApple in
                (fromApple, byReason("perennial_ingest_alarms_total", alarmHelp, "from_apple", fromApple))
            })
        seconds = registry.histogram(
            "perennial_ingest_request_seconds", help: "Time from the complete body to the answer, in seconds.",
            bounds: Histogram.latencySeconds)
        bodyBytes = registry.counter("perennial_ingest_body_bytes_total", help: "Bytes of bodies that were checked.")
        age = registry.histogram(
            "perennial_ingest_notification_age_seconds", help: "Age of verified notifications on arrival, in seconds.",
            // From one second, over the last retry after 157 hours, to the 180 days of a backfill.
            bounds: [1, 5, 15, 60, 300, 1800, 3600, 4 * 3600, 14 * 3600, 86_400, 4 * 86_400, 7 * 86_400, 180 * 86_400])
        usageIgnored = registry.counter(
            "perennial_ingest_usage_ignored_total",
            help: "Members of usage records that have no meaning; the answer names them.")
        usageRecords = registry.counter("perennial_ingest_usage_records_total", help: "Usage records that Kafka has.")
        for flag in Verifier.flagNames { _ = counter(ofFlag: flag) }
        know(bundles)
    }

    /// Sets the apps in the settings. The possible outcomes of their notifications are counted from zero. The apps of
    /// `wrong_app` are not known in advance, so for these the alarms are counted from zero.
    func know(_ bundles: [String]) {
        origins.withLock { $0.bundles = Set(bundles) }
        let aside = RejectionReason.allCases.filter { $0.treatment(fromApple: false) == .quarantine && $0 != .wrongApp }
        for environment in Contract.Environment.allCases {
            for bundle in bundles {
                for outcome in [Ending.accepted.rawValue] + aside.map(\.rawValue) {
                    _ = counter(outcome, environment, bundle)
                }
            }
        }
    }

    private static func requests(
        _ registry: Metrics, _ outcome: String, environment: String, bundle: String
    ) -> Counter {
        registry.counter(
            "perennial_ingest_requests_total",
            help:
                "Requests that the endpoint answered, by outcome (the reason if refused) and, if the signature proves "
                + "them, environment and app; what the server itself refused is in perennial_http_refused_total.",
            labels: ["outcome": outcome, "environment": environment, "bundle": bundle])
    }

    func count(_ ending: Ending) { requests[ending.rawValue]?.add() }
    func count(_ reason: RejectionReason) { requests[reason.rawValue]?.add() }
    func count(_ rejection: Rejection) {
        counter(rejection.reason.rawValue, rejection.environment, rejection.bundleId).add()
    }
    func countAccepted(_ environment: Contract.Environment, _ bundleId: String?) {
        counter(Ending.accepted.rawValue, environment, bundleId).add()
    }

    private func counter(_ outcome: String, _ environment: Contract.Environment?, _ bundleId: String?) -> Counter {
        origins.withLock { origins in
            var bundle = bundleId ?? ""
            if !bundle.isEmpty, !origins.bundles.contains(bundle), !origins.strangers.contains(bundle) {
                if origins.strangers.count < Self.limitStrangers {
                    origins.strangers.insert(bundle)
                } else {
                    bundle = Self.otherBundles
                }
            }
            let origin = Origin(outcome: outcome, environment: environment, bundle: bundle)
            if let known = origins.counters[origin] { return known }
            let counter = Self.requests(
                registry, outcome, environment: environment?.rawValue ?? "", bundle: bundle)
            origins.counters[origin] = counter
            return counter
        }
    }

    func count(_ failure: PublishFailure) { requests[failure.rawValue]?.add() }
    func countRejected(_ reason: RejectionReason, kept: Bool) {
        (kept ? rejectedKept : rejectedCounted)[reason]?.add()
    }
    func alarm(_ reason: RejectionReason, fromApple: Bool) { alarms[fromApple]?[reason]?.add() }

    /// Few notifications have flags, and the verifier knows only a handful of flags.
    func count(flags: [String]) {
        for flag in flags { counter(ofFlag: flag).add() }
    }

    private func counter(ofFlag flag: String) -> Counter {
        registry.counter(
            "perennial_ingest_flags_total", help: "Unusual details of accepted notifications, by flag.",
            labels: ["flag": flag])
    }

    /// Kafka has acknowledged a notification. Its bundle is one of the settings: the verifier accepts no other.
    /// - Parameter receivedDate: in milliseconds since 1970.
    func received(bundle: String?, _ environment: Contract.Environment, at receivedDate: Int64) {
        registry.gauge(
            "perennial_ingest_last_notification_timestamp_seconds",
            help: "When the last notification of an app that Kafka has acknowledged arrived, in seconds since 1970.",
            labels: ["environment": environment.rawValue, "bundle": bundle ?? "none"]
        ).set(Double(receivedDate) / 1000)
    }
}
