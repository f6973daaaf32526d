// Metrics of the revocation check.

import Telemetry

final class RevocationMetrics: Sendable {
    private let good: Counter
    private let revoked: Counter
    private let failures: [String: Counter]
    let duration: Histogram

    init(_ metrics: Metrics) {
        let answers = "Valid answers of the OCSP responder about one certificate, by status."
        good = metrics.counter("perennial_ocsp_answers_total", help: answers, labels: ["status": "good"])
        revoked = metrics.counter("perennial_ocsp_answers_total", help: answers, labels: ["status": "revoked"])
        var failures: [String: Counter] = [:]
        for failure in InquiryFailure.all {
            failures[failure.label] = metrics.counter(
                "perennial_ocsp_failures_total",
                help: "Requests to the OCSP responder that got no valid answer, by cause.",
                labels: ["cause": failure.label])
        }
        self.failures = failures
        duration = metrics.histogram(
            "perennial_ocsp_request_seconds", help: "Seconds from sending an OCSP request to its answer or failure.",
            bounds: Histogram.latencySeconds)
    }

    func count(_ outcome: InquiryOutcome) {
        switch outcome {
        case .good: good.add()
        case .revoked: revoked.add()
        case .failed(let failure): failures[failure.label]?.add()
        }
    }
}
