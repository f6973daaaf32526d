// One query of the revocation status of one chain.

import Crypto
public import HTTPClient
import Platform
import Synchronization
import Telemetry

/// Sends one request; the completion is called once, on any thread.
public typealias OCSPSender = @Sendable (HTTPClient.Request, @escaping HTTPClient.Completion) -> Void

/// Why the status was not learnt. A closed set: labels of metrics.
enum InquiryFailure: Error, Equatable {
    /// The certificate names no address that we ask.
    case noAddress
    case notReached(HTTPClientFault.Kind)
    case httpStatus
    case answer(OCSPFault)
    /// The responder does not know the certificate.
    case unknownThere

    static let all: [InquiryFailure] =
        [.noAddress, .httpStatus, .unknownThere] + HTTPClientFault.Kind.allCases.map { .notReached($0) }
        + OCSPFault.allCases.map { .answer($0) }

    var label: String {
        switch self {
        case .noAddress: "no_address"
        case .notReached(let kind): "http_\(kind.rawValue)"
        case .httpStatus: "http_status"
        case .answer(let fault): "answer_\(fault.rawValue)"
        case .unknownThere: "status_unknown"
        }
    }
}

/// The status of a chain: of both of its certificates, since each can be revoked.
enum InquiryOutcome: Equatable {
    /// Until the first of the two answers expires; milliseconds since 1970.
    case good(until: Int64)
    case revoked
    case failed(InquiryFailure)

    /// One revoked certificate is enough, whatever the status of the other is.
    func joined(with other: InquiryOutcome) -> InquiryOutcome {
        switch (self, other) {
        case (.revoked, _), (_, .revoked): .revoked
        case (.failed, _): self
        case (_, .failed): other
        case (.good(let mine), .good(let others)): .good(until: min(mine, others))
        }
    }
}

struct Inquiry: Sendable {
    let send: OCSPSender
    let metrics: RevocationMetrics
    let now: @Sendable () -> Int64

    /// Never blocks. `completion` is called once, on the thread of the later answer or on the calling thread.
    func ask(about chain: TrustedChain, completion: @escaping @Sendable (InquiryOutcome) -> Void) {
        let questions = [
            OCSPQuestion(about: chain.intermediate, issuedBy: chain.root),
            OCSPQuestion(about: chain.leaf, issuedBy: chain.intermediate),
        ]
        let outcomes = Outcomes(expected: questions.count)
        for question in questions {
            ask(question) { outcome in
                if let joined = outcomes.add(outcome) { completion(joined) }
            }
        }
    }

    private func ask(_ question: OCSPQuestion, completion: @escaping @Sendable (InquiryOutcome) -> Void) {
        guard let address = ResponderAddress.allowed(for: question) else {
            return completion(counted(.failed(.noAddress)))
        }
        let begin = ContinuousClock.now
        let request = HTTPClient.Request(
            "POST", address,
            headers: [
                .init("Content-Type", "application/ocsp-request"), .init("Accept", "application/ocsp-response"),
            ], body: question.request)
        send(request) { result in
            metrics.duration.observe(ContinuousClock.now - begin)
            completion(counted(outcome(of: question, result)))
        }
    }

    private func outcome(
        of question: OCSPQuestion, _ result: Result<HTTPClient.Response, HTTPClientFault>
    ) -> InquiryOutcome {
        switch result {
        case .failure(let fault): return .failed(.notReached(fault.kind))
        case .success(let response):
            guard response.status == 200 else { return .failed(.httpStatus) }
            do throws(OCSPFault) {
                let answer = try question.answer(response.body, now: now())
                switch answer.status {
                case .good: return .good(until: answer.validUntil)
                case .revoked: return .revoked
                case .unknown: return .failed(.unknownThere)
                }
            } catch {
                return .failed(.answer(error))
            }
        }
    }

    private func counted(_ outcome: InquiryOutcome) -> InquiryOutcome {
        metrics.count(outcome)
        return outcome
    }
}

/// Joins the outcomes of requests that end on any thread.
private final class Outcomes: Sendable {
    private let state: Mutex<(joined: InquiryOutcome?, left: Int)>

    init(expected: Int) { state = Mutex((nil, expected)) }

    /// Returns the joined outcome for the last one, nil before.
    func add(_ outcome: InquiryOutcome) -> InquiryOutcome? {
        state.withLock { state in
            state.joined = state.joined?.joined(with: outcome) ?? outcome
            state.left -= 1
            return state.left == 0 ? state.joined : nil
        }
    }
}
