// Posts the notifications of the simulated App Store: in order for each subscriber, with retries like Apple's.

import Crypto
package import HTTPClient
import JSON
package import Platform
import Synchronization

/// Decides when a post is due, instead of the options' speed and rate. Called on the courier's thread.
package protocol CourierGuide: Sendable {
    /// true: nothing more is sent.
    var isOver: Bool { get }
    /// The estimated real time until a post that is due at `time`.
    func wait(until time: Int64) -> Duration
    func sending(_ parcel: Parcel, sends: Int)
    func answered(_ parcel: Parcel, sends: Int, _ answer: Answer, _ verdict: Verdict)
}

/// Runs one delivery from its first post to its last answer, on the calling thread.
package struct Courier {
    package struct Options: Sendable {
        var url: String
        /// Posts in flight at the same time.
        package var connections = 32
        /// Milliseconds of the simulation per real millisecond; nil: as fast as answers arrive.
        var speed: Double?
        /// New posts per second; nil: their number is not limited.
        var rate: Double?
        /// Milliseconds of Apple's retry delays per real millisecond.
        package var retryScale = 3600.0
        /// Where usage records are posted; nil: there are none.
        package var usage: Usage?
        /// The delivery ends if nobody listens for this long; nil: it continues. After the first answer it always continues, because
        /// then it is an outage, which Apple may meet too.
        var patienceForNobody: Duration?

        package struct Usage: Sendable {
            var url: String
            var token: String

            package init(url: String, token: String) {
                self.url = url
                self.token = token
            }
        }
    }

    /// Posts that wait for a retry, a few hundred bytes each. At this number nothing new is sent: the other side is down, and after
    /// its return the retries come first.
    private static let maxWaiting = 50_000

    /// Time between two checks whether somebody listens.
    private static let nobodyInterval: Duration = .milliseconds(200)

    /// The longest time that a guide waits for the courier.
    private static let guidedInterval: Duration = .milliseconds(50)

    private let options: Options
    private let client: HTTPClient
    private let guide: (any CourierGuide)?
    private let mailbox = Mailbox()
    /// Called for every post that has its last answer.
    private let journal:
        (_ parcel: Parcel, _ sha256: [UInt8], _ sends: Int, _ answer: Answer, _ verdict: Verdict) throws(OutputFault) ->
            Void
    private var retries = RetryQueue()
    private var order = SubscriberOrder()
    private var inFlight = 0
    private(set) var tally = Tally()
    private var waitForNobody: ContinuousClock.Instant?
    /// Why the delivery ended early; nil: it did not.
    private(set) var nobody: HTTPClientFault?

    package init(
        _ options: Options, client: HTTPClient, guide: (any CourierGuide)? = nil,
        journal: @escaping (Parcel, [UInt8], Int, Answer, Verdict) throws(OutputFault) -> Void
    ) {
        self.options = options
        self.client = client
        self.guide = guide
        self.journal = journal
    }

    /// - Parameters:
    ///   - next: returns the posts, in the order of their times.
    ///   - watch: called regularly with the time of the last post that was sent.
    package mutating func deliver(
        _ next: () throws(OutputFault) -> Parcel?, watch: (Int64, Tally) -> Void
    ) throws(OutputFault) {
        let start = ContinuousClock.now
        waitForNobody = options.patienceForNobody.map { start + $0 }
        var upcoming = try next()
        let firstAt = upcoming?.at ?? 0
        var lastAt = firstAt
        var started = 0
        while upcoming != nil || inFlight > 0 || retries.count > 0 || !order.isEmpty {
            try settle(mailbox.take())
            if nobody != nil { return }
            if let guide, guide.isOver { return }
            let now = ContinuousClock.now
            var wake = now + (guide == nil ? .seconds(1) : Self.guidedInterval)
            if inFlight < options.connections {
                if let entry = retries.pop(dueBy: now) {
                    send(entry.parcel, sha256: entry.sha256, sends: entry.sends + 1)
                    continue
                }
                if let parcel = order.nextReady() {
                    sendFirst(parcel)
                    continue
                }
                wake = min(wake, retries.nextDue ?? wake)
                if let parcel = upcoming, retries.count < Self.maxWaiting, order.hasRoom {
                    let due =
                        if let guide { now + guide.wait(until: parcel.at) } else {
                            start + dueAfter(parcel.at - firstAt, started: started)
                        }
                    if due <= now {
                        if parcel.kind != .wait {
                            if order.mayStart(parcel) { sendFirst(parcel) }
                            started += 1
                        }
                        lastAt = parcel.at
                        upcoming = try next()
                        watch(lastAt, tally)
                        continue
                    }
                    wake = min(wake, due)
                }
            }
            watch(lastAt, tally)
            mailbox.wait(until: Deadline(after: ContinuousClock.now.duration(to: wake)))
        }
    }

    private func dueAfter(_ milliseconds: Int64, started: Int) -> Duration {
        let byStory = options.speed.map { Duration.seconds(Double(milliseconds) / 1000 / $0) } ?? .zero
        let byRate = options.rate.map { Duration.seconds(Double(started) / $0) } ?? .zero
        return max(byStory, byRate)
    }

    private mutating func sendFirst(_ parcel: Parcel) {
        tally.countPost()
        send(parcel, sha256: nil, sends: 1)
    }

    private mutating func send(_ parcel: Parcel, sha256: [UInt8]?, sends: Int) {
        guide?.sending(parcel, sends: sends)
        let payload = parcel.payload()
        let sha256 = sha256 ?? SHA256.digest(payload.span)
        inFlight += 1
        client.send(request(of: parcel, payload)) { [mailbox] result in
            let fault: HTTPClientFault? = if case .failure(let fault) = result { fault } else { nil }
            mailbox.put(
                Mailbox.Letter(parcel: parcel, sha256: sha256, sends: sends, answer: Answer(result), fault: fault))
        }
    }

    private func request(of parcel: Parcel, _ payload: [UInt8]) -> HTTPClient.Request {
        let type = HTTPClient.Header("Content-Type", "application/json")
        if parcel.kind == .usage, let usage = options.usage {
            let token = HTTPClient.Header("Authorization", "Bearer \(usage.token)")
            return HTTPClient.Request("POST", usage.url, headers: [type, token], body: payload)
        }
        var body = Array(#"{"signedPayload":""#.utf8)
        body += payload
        body += Array(#""}"#.utf8)
        return HTTPClient.Request("POST", options.url, headers: [type], body: body)
    }

    private mutating func settle(_ letters: [Mailbox.Letter]) throws(OutputFault) {
        for letter in letters {
            inFlight -= 1
            if let fault = letter.fault, fault.kind.isNobody, !tally.wasAnswered, let until = waitForNobody {
                // Ingest may have been started at the same time and not listen yet.
                guard fault.kind == .notConnected, until > .now else {
                    nobody = nobody ?? fault
                    return
                }
                retries.append(
                    RetryQueue.Entry(
                        parcel: letter.parcel, sha256: letter.sha256, sends: letter.sends - 1,
                        due: .now + Self.nobodyInterval), delay: 0)
                continue
            }
            if letter.sends == 1 { order.ended(letter.parcel.subscriber) }
            tally.count(letter.answer, letter.fault)
            let verdict = letter.parcel.expectation.verdict(on: letter.answer)
            guide?.answered(letter.parcel, sends: letter.sends, letter.answer, verdict)
            let delays = letter.parcel.retryDelays
            if verdict == .unsettled, letter.sends <= delays.count {
                let delay = delays[letter.sends - 1]
                let due = ContinuousClock.now + .seconds(Double(delay) / 1000 / options.retryScale)
                retries.append(
                    RetryQueue.Entry(parcel: letter.parcel, sha256: letter.sha256, sends: letter.sends, due: due),
                    delay: delay)
                continue
            }
            tally.count(verdict, letter.answer)
            try journal(letter.parcel, letter.sha256, letter.sends, letter.answer, verdict)
        }
    }
}

extension Courier.Options {
    package init(url: String) { self.init(url: url, usage: nil) }
}

extension HTTPClientFault.Kind {
    /// Nothing was sent, and a retry would not help.
    fileprivate var isNobody: Bool {
        switch self {
        case .invalidRequest, .nameNotFound, .notConnected, .tls: true
        default: false
        }
    }
}

extension Answer {
    init(_ result: Result<HTTPClient.Response, HTTPClientFault>) {
        switch result {
        case .success(let response): self = .status(response.status, error: Self.error(in: response.body))
        case .failure(let fault): self = .none(fault.kind)
        }
    }

    /// The answer may be from any server: other bodies have no error code.
    private static func error(in body: [UInt8]) -> String? {
        do throws(JSONFault) {
            let answer = try JSONValue.read(body)
            return (answer["error"] ?? answer["rejected"])?.string
        } catch {
            return nil
        }
    }
}

/// Passes answers from the client's thread to the courier's thread.
private final class Mailbox: Sendable {
    struct Letter: Sendable {
        let parcel: Parcel
        let sha256: [UInt8]
        let sends: Int
        let answer: Answer
        /// Why there was no answer; nil: there was one.
        let fault: HTTPClientFault?
    }

    private struct State {
        var letters: [Letter] = []
        /// Opened when the next answer arrives; nil: nobody waits.
        var arrival: Latch?
    }

    private let state = Mutex(State())

    func put(_ letter: Letter) {
        let arrival = state.withLock { state in
            defer { state.arrival = nil }
            state.letters.append(letter)
            return state.arrival
        }
        arrival?.open()
    }

    func take() -> [Letter] {
        state.withLock { state in
            defer { state.letters = [] }
            return state.letters
        }
    }

    /// Returns at once if answers are there.
    func wait(until deadline: Deadline) {
        let arrival: Latch? = state.withLock { state in
            guard state.letters.isEmpty else { return nil }
            state.arrival = Latch()
            return state.arrival
        }
        arrival?.wait(until: deadline)
    }
}
