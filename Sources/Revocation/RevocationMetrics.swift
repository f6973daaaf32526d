// What is counted of revocation.

import Telemetry

final class RevocationMetrics: Sendable {
    private let good: Counter
    private let revoked: Counter
    private let failures: [String: Counter]
    let duration: Histogram

    init(_ metrics: Metrics) {
        let answers = "Answers about one certificate that are valid, by what they say."
        good = metrics.counter("perennial_ocsp_answers_total", help: answers, labels: ["status": "good"])
        revoked = metrics.counter("perennial_ocsp_answers_total", help: answers, labels: ["status": "revoked"])
        var failures: [String: Counter] = [:]
        for failure in InquiryFailure.all {
            failures[failure.label] = metrics.counter(
                "perennial_ocsp_failures_total",
                help: "Questions about one certificate that brought no answer, by cause.",
                labels: ["cause": failure.label])
        }
        self.failures = failures
        duration = metrics.histogram(
            "perennial_ocsp_request_seconds", help: "From sending a question to its answer or failure.",
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
