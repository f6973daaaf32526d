// The HTTP face of the read API.

internal import Churn
internal import Contract
internal import Entitlements
internal import Follow
internal import HTTP
internal import JSON
internal import Log
internal import Platform
internal import Telemetry

/// Answers from the local copies, on the threads of the server: a look into a copy is shorter than handing it to others.
final class Endpoint: HTTPHandler {
    /// A replica that restarts catches up within seconds, and there may be another one.
    static let retryAfterSeconds = 5

    private let copies: [PartitionCopy]
    private let totals: CellTotals
    /// Of the cells.
    private let dayOf: @Sendable (Int64) -> CivilDay
    /// By the number of a `FollowedTopic`, each a JSON text.
    private let topicNames: [[UInt8]]
    private let token: String?
    private let time: ReadAPITime
    private let readiness: Readiness
    private let metrics: ReadAPIMetrics
    private let parsers = Parsers()

    /// - Parameter token: nil: everybody may ask.
    init(
        _ names: Names, copies: [PartitionCopy], totals: CellTotals, token: String?, time: ReadAPITime,
        readiness: Readiness, metrics: ReadAPIMetrics, dayOf: @escaping @Sendable (Int64) -> CivilDay
    ) {
        self.copies = copies
        self.totals = totals
        self.dayOf = dayOf
        self.token = token
        self.time = time
        self.readiness = readiness
        self.metrics = metrics
        topicNames = FollowedTopic.allCases.map { topic in
            var writer = JSONWriter()
            writer.string(names.topic(topic.id))
            return writer.bytes
        }
    }

    /// Who may not ask learns nothing of what is there.
    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? {
        if let token, !head.headers.bear(token) {
            var response = HTTPResponse.error(401, "unauthorized")
            response.headers.add("WWW-Authenticate", "Bearer")
            return counted(response, nil)
        }
        guard let (route, _) = Question.route(head.path) else { return counted(.error(404, "not_found"), nil) }
        // A server that takes GET takes HEAD, whose answer it sends without the body.
        guard head.method == "GET" || head.method == "HEAD" else {
            var response = HTTPResponse.error(405, "method_not_allowed")
            response.headers.add("Allow", "GET, HEAD")
            return counted(response, route)
        }
        return nil
    }

    func handle(_ request: HTTPRequest, _ responder: Responder) {
        let start = ContinuousClock.now
        // `earlyAnswer` has let nothing else through.
        let found = Question.route(request.path)
        let response = found.map { answer($0.route, $0.subject, query: request.query) } ?? .error(404, "not_found")
        // Before the answer is out: who has it may look at the metrics.
        metrics.seconds.observe(start.duration(to: .now))
        responder.respond(counted(response, found?.route))
    }

    private func counted(_ response: HTTPResponse, _ route: Question.Route?) -> HTTPResponse {
        metrics.count(route, status: response.status)
        return response
    }

    // MARK: Answers

    func answer(_ route: Question.Route, _ subject: Substring.UTF8View, query: String?) -> HTTPResponse {
        let question: Question
        do throws(Question.Flaw) {
            question = try Question(route, subject, query: query)
        } catch {
            return Self.refusal(error)
        }
        guard readiness.trouble(at: time.elapsed()) == nil else { return Self.unavailable }
        switch question {
        case .subscription(let id): return subscription(id)
        case .content(let id, let published, let scope): return content(id, published, scope)
        case .account(let token): return account(token)
        case .metrics(let request): return metrics(request)
        case .refunds(let id): return refunds(ofSubscription: id)
        case .refund(let id): return refund(id)
        }
    }

    /// The name of what the client has to mend may be its own, with anything in it.
    private static func refusal(_ flaw: Question.Flaw) -> HTTPResponse {
        var writer = JSONWriter()
        writer.object { json in
            switch flaw {
            case .invalid(let parameter, let reason):
                json.member("error", "invalid_parameter")
                json.member("parameter", parameter)
                if let reason { json.member("reason", reason) }
            case .missing(let parameter):
                json.member("error", "missing_parameter")
                json.member("parameter", parameter)
            case .tooMany(let parameter, let limit):
                json.member("error", "too_many_values")
                json.member("parameter", parameter)
                json.member("limit", limit)
            }
        }
        return .json(400, writer.bytes)
    }

    private static let unavailable = HTTPResponse.error(503, "unavailable", retryAfterSeconds: retryAfterSeconds)

    private func subscription(_ id: [UInt8]) -> HTTPResponse {
        let copy = copy(for: id)
        guard let reading = copy.value(.entitlements, id) else { return Self.unavailable }
        guard let record = reading.found else { return .error(404, "not_found") }
        var body: [UInt8] = []
        body.reserveCapacity(record.count + 256)
        body.append(contentsOf: #"{"subscription":"#.utf8)
        // As it was written, members that are not known here included.
        body.append(contentsOf: record)
        body.append(contentsOf: #","position":"#.utf8)
        body.append(contentsOf: position(.entitlements, copy, reading.place))
        body.append(UInt8(ascii: "}"))
        return Self.found(body)
    }

    private func content(_ id: [UInt8], _ published: [Int64], _ scope: ContentScope) -> HTTPResponse {
        let copy = copy(for: id)
        guard let reading = copy.value(.entitlements, id) else { return Self.unavailable }
        guard let record = reading.found else { return .error(404, "not_found") }
        let parser = parsers.take()
        defer { parsers.giveBack(parser) }
        // What the follower has let in can be read.
        do throws(JSONFault) { try parser.json.read(record.span) } catch { return Self.unavailable }
        let now = time.now()
        let root = parser.json.root
        let runs = PublishedRecord.runs(of: root, in: parser.json)
            .lasting(at: now, hasAccess: PublishedRecord.hasAccess(root, in: parser.json, at: now))
        var writer = JSONWriter()
        writer.object { writer in
            writer.name("accessible")
            writer.array { writer in
                for date in runs.accessible(published, at: now, scope: scope) { writer.integer(date) }
            }
            writer.member("position", json: position(.entitlements, copy, reading.place))
        }
        return Self.found(writer.bytes)
    }

    /// An account without records is answered like any other: whether there is such an account only the app's backend knows.
    private func account(_ token: String) -> HTTPResponse {
        let copy = copy(for: Array(token.utf8))
        guard let reading = copy.records(ofAccount: token) else { return Self.unavailable }
        let parser = parsers.take()
        defer { parsers.giveBack(parser) }
        let body = AccountAnswer.body(
            token, reading.found, at: time.now(), position: position(.accounts, copy, reading.place), parser)
        // To come again later would not help.
        return body.map { Self.found($0) } ?? .error(422, "account_too_large")
    }

    /// Where no worker counts, there is nothing, and that is the answer.
    private func metrics(_ request: MetricsRequest) -> HTTPResponse {
        guard let (table, places) = totals.reading else { return Self.unavailable }
        var writer = JSONWriter(capacity: 128 * places.count)
        writer.array { writer in
            for (copy, place) in zip(copies, places) { writePosition(.cells, copy, place, to: &writer) }
        }
        return Self.found(MetricsAnswer.body(table, request, dayOf: dayOf, position: writer.bytes))
    }

    // MARK: Refunds

    /// A subscription that is known may have none.
    private func refunds(ofSubscription id: [UInt8]) -> HTTPResponse {
        let copy = copy(for: id)
        guard let reading = copy.refunds(ofSubscription: id) else { return Self.unavailable }
        if reading.found.refunds.values.isEmpty, !reading.found.isKnown { return .error(404, "not_found") }
        let parser = parsers.take()
        defer { parsers.giveBack(parser) }
        let position = position(.consumption, copy, reading.place)
        return Self.found(RefundAnswer.body(reading.found.refunds, position: position, parser))
    }

    /// Its partition is that of its subscription, which the id does not tell.
    private func refund(_ id: [UInt8]) -> HTTPResponse {
        for copy in copies {
            guard let reading = copy.refund(id) else { return Self.unavailable }
            guard let refund = reading.found else { continue }
            let parser = parsers.take()
            defer { parsers.giveBack(parser) }
            let body = RefundAnswer.body(refund, position: position(.consumption, copy, reading.place), parser)
            return body.map { Self.found($0) } ?? Self.unavailable
        }
        return .error(404, "not_found")
    }

    private static func found(_ body: [UInt8]) -> HTTPResponse {
        var response = HTTPResponse.json(200, body)
        // True for a moment, and of one customer.
        response.headers.add("Cache-Control", "no-store")
        return response
    }

    private func copy(for key: [UInt8]) -> PartitionCopy {
        copies[Int(Partitioner.partition(of: key, count: Int32(copies.count)))]
    }

    private func position(_ topic: FollowedTopic, _ copy: PartitionCopy, _ place: CopyNote.Place) -> [UInt8] {
        var writer = JSONWriter(capacity: 128)
        writer.array { writer in writePosition(topic, copy, place, to: &writer) }
        return writer.bytes
    }

    private func writePosition(
        _ topic: FollowedTopic, _ copy: PartitionCopy, _ place: CopyNote.Place, to writer: inout JSONWriter
    ) {
        writer.object { writer in
            writer.member("topic", json: topicNames[topic.rawValue])
            writer.member("partition", copy.number)
            writer.member("offset", place.next?.value ?? 0)
            writer.member("asOf", orNull: place.clock)
        }
    }
}
