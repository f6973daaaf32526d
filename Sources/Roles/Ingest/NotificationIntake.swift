// POST /notifications: verify, publish, answer.

import AppStore
import HTTP
import Platform
import Records
import Telemetry

final class NotificationIntake: Sendable {
    private let judge: any NotificationJudge
    private let sink: any RecordSink
    private let metrics: IngestMetrics
    private let refusals: RefusalLog
    private let records: RecordFactory
    private let rejected: RejectedKeeper
    private let acknowledged: Acknowledged

    init(
        judge: any NotificationJudge, sink: any RecordSink, metrics: IngestMetrics, refusals: RefusalLog,
        records: RecordFactory, repeatedMilliseconds: Int64, rejected: RejectedKeeper
    ) {
        acknowledged = Acknowledged(generationMilliseconds: repeatedMilliseconds)
        self.judge = judge
        self.sink = sink
        self.metrics = metrics
        self.refusals = refusals
        self.records = records
        self.rejected = rejected
    }

    func take(_ arrival: Arrival, _ answer: @escaping Answer) {
        let acknowledged = acknowledged
        judge.judge(
            arrival.body, isFromApple: arrival.isFromApple, now: arrival.receivedDate, by: arrival.deadline,
            unless: { acknowledged.contains($0, now: arrival.receivedDate) }
        ) { verdict in
            switch verdict {
            case .verified(let notification, let jws): self.publish(notification, jws, arrival, answer)
            case .known:
                self.metrics.count(.repeated)
                answer(HTTPResponse(status: 200))
            case .rejected(let rejection, let jws): self.refuse(arrival, jws, rejection, answer)
            case .none: answer(self.comeAgain(.noVerdict))
            case .tooBusy: answer(self.comeAgain(.tooBusy))
            }
        }
    }

    private func comeAgain(_ ending: IngestMetrics.Ending) -> HTTPResponse {
        metrics.count(ending)
        refusals.note(ending.rawValue)
        return .error(503, ending.rawValue)
    }

    private func publish(
        _ notification: VerifiedNotification, _ jws: [UInt8], _ arrival: Arrival, _ answer: @escaping Answer
    ) {
        metrics.age.observe(Double(arrival.receivedDate - notification.signedDate) / 1000)
        metrics.count(flags: notification.flags)
        let (environment, bundleId) = (notification.environment, notification.bundleId)
        let hash = notification.sha256
        let finding = acknowledged.begin(jws, hash: hash, now: arrival.receivedDate) { outcome in
            switch outcome {
            case .written: answer(self.repeated())
            case .failed(let failure): answer(self.comeAgain(failure))
            }
        }
        switch finding {
        case .acknowledged: return answer(repeated())
        case .underWay: return
        case .late: return answer(comeAgain(.timedOut))
        case .new: break
        }
        let records = records.records(of: notification, jws: jws, receivedDate: arrival.receivedDate)
        sink.publish(
            Publication(
                records, by: arrival.deadline,
                completion: { outcome in
                    let waiters = self.acknowledged.complete(
                        jws, hash: hash, outcome, now: arrival.receivedDate)
                    switch outcome {
                    case .written:
                        self.metrics.countAccepted(environment, bundleId)
                        self.metrics.received(bundle: bundleId, environment, at: arrival.receivedDate)
                        answer(HTTPResponse(status: 200))
                    case .failed(let failure): answer(self.comeAgain(failure))
                    }
                    for waiter in waiters { waiter(outcome) }
                },
                ending: { _ in self.acknowledged.end(hash) }))
    }

    private func repeated() -> HTTPResponse {
        metrics.count(.repeated)
        return HTTPResponse(status: 200)
    }

    /// - Parameter jws: the signed text; nil: the body contains no signed text.
    private func refuse(_ arrival: Arrival, _ jws: [UInt8]?, _ rejection: Rejection, _ answer: @escaping Answer) {
        let reason = rejection.reason
        refusals.note(reason.rawValue)
        switch reason.treatment(fromApple: arrival.isFromApple) {
        case .tooLarge:
            metrics.count(reason)
            answer(.error(413, reason.rawValue))
        case .refuse:
            metrics.count(reason)
            rejected.keepIfThereIsRoom(arrival, jws, rejection)
            answer(.error(400, reason.rawValue))
        case .keepAndAskAgain:
            metrics.count(rejection)
            metrics.alarm(reason, fromApple: arrival.isFromApple)
            // Answered the same whether the body is stored or not: what matters is that Apple retries.
            rejected.keep(arrival, jws, rejection) { _ in answer(.error(503, reason.rawValue)) }
        case .quarantine:
            metrics.alarm(reason, fromApple: arrival.isFromApple)
            refusals.noteAside(rejection)
            rejected.keep(arrival, jws, rejection) { outcome in
                switch outcome {
                case .written?:
                    self.metrics.count(rejection)
                    answer(.setAside(reason.rawValue))
                case .failed(let failure)?: answer(self.comeAgain(failure))
                case nil:
                    self.metrics.count(rejection)
                    answer(.error(503, reason.rawValue))
                }
            }
        }
    }

    private func comeAgain(_ failure: PublishFailure) -> HTTPResponse {
        metrics.count(failure)
        refusals.note(failure.rawValue)
        return .error(503, failure.rawValue)
    }
}

extension HTTPResponse {
    /// Apple looks only at the status. A person who tests an installation learns that the notification was not
    /// accepted.
    static func setAside(_ code: String) -> HTTPResponse { .json(200, Array(#"{"rejected":"\#(code)"}"#.utf8)) }
}
