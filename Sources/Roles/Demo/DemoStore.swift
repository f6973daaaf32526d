// The simulated App Store as a part of the demo: it posts by the demo's clock.

import CommandLine
import Crypto
import HTTPClient
import Platform
import Service
import Simulation
import Simulator

enum DemoStore {
    /// Enough for one machine, and few enough to keep all connections open.
    private static let connections = 16
    /// An hour between Apple's retries takes one second.
    private static let retryScale = 3600.0
    private static let readyInterval: Duration = .milliseconds(50)

    /// - Parameters:
    ///   - isIngestReady: nothing is posted before it is true. Apple would post at once, and retry in an hour.
    ///   - url: where the store posts to; called once, at the start.
    ///   - usage: where the app's backend posts to, called like `url`; nil: there is no backend.
    ///   - authority: PEM of the authority of ingest's certificate.
    static func part(
        _ store: MakeBelieveStore, clock: StoreClock, board: DemoBoard, authority: [UInt8],
        isIngestReady: @escaping @Sendable () -> Bool, url: @escaping @Sendable () -> String?,
        usage: @escaping @Sendable () -> Courier.Options.Usage? = { nil }
    ) -> ThreadPart {
        ThreadPart("app-store") { stop in
            guard let url = url() else { throw DemoFault(description: "ingest does not listen") }
            var configuration = HTTPClient.Configuration()
            configuration.threadName = "app-store-http"
            configuration.maxInFlight = connections
            configuration.maxResponseBytes = Answer.maxBytes
            configuration.extraAuthorities = authority
            configuration.userAgent = "perennial-demo/\(PerennialVersion.text)"
            let client = try HTTPClient(configuration)
            defer { client.close() }
            while !isIngestReady() { if stop.wait(for: readyInterval) { return } }
            var options = Courier.Options(url: url)
            options.connections = connections
            options.retryScale = retryScale
            options.usage = usage()
            let guide = Guide(clock: clock, board: board, stop: stop)
            var courier = Courier(options, client: client, guide: guide) { _, _, _, _, _ in }
            var parcels = store.parcels(withUsage: options.usage != nil)
            var waited: Int64?
            try courier.deliver(
                {
                    guard let parcel = parcels.next() else { return nil }
                    clock.expect(parcel.at)
                    // Time must not pass a decision before it is made.
                    let before = waited
                    waited = parcel.kind == .wait ? parcel.at : nil
                    if let before { clock.settle(post: before) }
                    return parcel
                }, watch: { _, _ in })
            // All stories have ended. Their consequences are still shown.
            stop.wait()
        }
    }

    private struct Guide: CourierGuide {
        let clock: StoreClock
        let board: DemoBoard
        let stop: Latch

        var isOver: Bool { stop.isOpen }
        func wait(until time: Int64) -> Duration { clock.wait(until: time) }

        func sending(_ parcel: Parcel, sends: Int) {
            if parcel.isRefundRequest, sends == 1 {
                clock.wait(
                    forRequest: parcel.notificationUUID, slowFrom: parcel.at + DemoAnswers.calm,
                    deadline: parcel.at + RefundTruth.timeToAnswer)
            }
            guard parcel.kind == .notification else { return }
            board.sending(
                parcel.notificationUUID, waitsForOutput: parcel.expectation == .accepted && sends == 1)
        }

        func answered(_ parcel: Parcel, sends: Int, _ answer: Answer, _ verdict: Verdict) {
            if parcel.kind == .notification { board.answered(verdict) }
            if parcel.isRefundRequest, verdict != .accepted { clock.settle(request: parcel.notificationUUID) }
            // As with Apple, time does not stop for a retry.
            if sends == 1 { clock.settle(post: parcel.at) }
        }
    }
}
