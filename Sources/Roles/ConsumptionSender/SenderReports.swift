// Judges Apple's responses.

internal import Consumption
internal import Telemetry

/// Counts responses, notices trouble with the key, the clock or the connection, and decides how long an app must wait.
/// Used on the sender's thread.
final class SenderReports {
    struct Pause {
        /// In milliseconds since 1970.
        var until: Int64
        var renewsToken = false
    }

    private struct App {
        /// Number of 401 responses in a row.
        var unauthorized = 0
        var unanswered = 0
        /// On the elapsed clock: attempts that began earlier used the old token.
        var renewedAt: Duration?
        /// In milliseconds since 1970.
        var refusedUntil: Int64 = .min
    }

    /// One missing response is no trouble; this many in a row are.
    private static let patience = 3
    /// Apple refuses tokens from other times, with a tolerance of some seconds.
    private static let clockTolerance: Int64 = 60_000

    private let troubles: SenderTroubles
    private let metrics: SenderMetrics
    private let time: SenderTime
    private var apps: [String: App] = [:]

    init(_ troubles: SenderTroubles, metrics: SenderMetrics, time: SenderTime) {
        self.troubles = troubles
        self.metrics = metrics
        self.time = time
    }

    func nothingIsOpen() {
        guard !apps.isEmpty else { return }
        apps = [:]
        troubles.forget([.unauthorized, .unreachable])
    }

    /// Apple refused the app's key even with a new token.
    func isRefused(_ app: String) -> Bool { apps[app].map { $0.unauthorized > 1 } ?? false }

    /// - Parameter begun: the start of the attempt, on the elapsed clock.
    /// - Returns: how long the app's answers must wait; nil: only this answer waits.
    func heard(
        _ delivery: Delivery, _ verdict: Attempt.Verdict, app: String, begun: Duration, at wall: Int64
    ) -> Pause? {
        hearClock(delivery.clockAhead)
        var state = apps[app] ?? App()
        defer { apps[app] = state }
        switch verdict {
        case .unauthorized:
            metrics.count(.unauthorized)
            isThere(app, &state)
            if let renewedAt = state.renewedAt, begun < renewedAt {
                return Pause(until: max(wall, state.refusedUntil))
            }
            state.renewedAt = time.elapsed()
            state.unauthorized += 1
            // The first 401 may mean that the token has expired. The second means that Apple refuses the key.
            guard state.unauthorized > 1 else { return Pause(until: wall, renewsToken: true) }
            troubles.tell(
                .unauthorized, app: app,
                "Apple refuses the key for \(app) (401): \(delivery.advice ?? "check apple.issuer.id, apple.key.id and apple.key")"
            )
            state.refusedUntil = wall + Retry.unauthorizedWait
            return Pause(until: state.refusedUntil, renewsToken: true)
        case .sent, .failed:
            metrics.count(verdict == .sent ? .sent : .failed)
            state = App()
            troubles.tell(.unauthorized, app: app, nil)
            troubles.tell(.unreachable, app: app, nil)
            return nil
        case .retry: return hearTrouble(delivery, app, &state, wall)
        }
    }

    /// Apple responds, whatever the status is.
    private func isThere(_ app: String, _ state: inout App) {
        state.unanswered = 0
        troubles.tell(.unreachable, app: app, nil)
    }

    private func hearTrouble(_ delivery: Delivery, _ app: String, _ state: inout App, _ wall: Int64) -> Pause? {
        guard case .answered(let status) = delivery.result else {
            metrics.count(.unanswered)
            state.unanswered += 1
            if state.unanswered >= Self.patience, case .unanswered(let words) = delivery.result {
                troubles.tell(.unreachable, app: app, "Apple's API does not answer for \(app): \(words)")
            }
            return nil
        }
        if status == 429 {
            metrics.count(.limited)
            isThere(app, &state)
            return Pause(until: Retry.pauseEnd(retryAfter: delivery.retryAfter, now: wall))
        }
        metrics.count(.retry)
        state.unanswered += 1
        if state.unanswered >= Self.patience {
            troubles.tell(.unreachable, app: app, "Apple's API answers \(status) for \(app); the sender retries")
        }
        return nil
    }

    private func hearClock(_ ahead: Int64?) {
        guard let ahead else { return }
        metrics.clockAhead.set(Double(ahead) / 1000)
        guard abs(ahead) > Self.clockTolerance else { return troubles.tell(.clock, nil) }
        let seconds = abs(ahead) / 1000
        troubles.tell(
            .clock,
            "this host's clock is \(seconds) s \(ahead > 0 ? "ahead of" : "behind") Apple's: Apple refuses its tokens, and "
                + "deadlines are judged wrongly; set the clock (NTP)")
    }
}
