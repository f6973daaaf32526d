// The HTTP endpoint of the read API.

internal import Churn
internal import Contract
internal import Entitlements
internal import Follow
internal import HTTP
internal import JSON
internal import Log
internal import Telemetry

/// Answers from the local copies, on the threads of the server: a look-up in a copy takes less time than passing it to
/// another thread.
final class Endpoint: HTTPHandler {
    /// A replica that restarts catches up within seconds, and there may be another replica.
    static let retryAfterSeconds = 5

    /// One for each served environment, production first.
    private let shelves: [Shelf]
    /// The day of a time, for cells.
    private let dayOf: @Sendable (Int64) -> CivilDay
    private let tokens: TokenRing
    private let time: ReadAPITime
    private let metrics: ReadAPIMetrics
    private let parsers = Parsers()

    init(
        _ shelves: [Shelf], tokens: TokenRing, time: ReadAPITime, metrics: ReadAPIMetrics,
        dayOf: @escaping @Sendable (Int64) -> CivilDay
    ) {
        self.shelves = shelves
        self.dayOf = dayOf
        self.tokens = tokens
        self.time = time
        self.metrics = metrics
    }

    /// A client without a valid token learns nothing about the paths.
    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? {
        guard tokens.admit(head.headers) else {
            var response = HTTPResponse.error(401, "unauthorized")
            response.headers.add("WWW-Authenticate", "Bearer")
            return finished(response, nil)
        }
        guard tokens.admits(host: head.headers["Host"]) else { return finished(Self.foreignHost, nil) }
        guard let (route, _) = Question.route(head.path) else { return finished(Self.unknownPath, nil) }
        // A server that supports GET must support HEAD, whose answer it sends without the body.
        guard head.method == "GET" || head.method == "HEAD" else {
            var response = HTTPResponse.error(405, "method_not_allowed")
            response.headers.add("Allow", "GET, HEAD")
            return finished(response, route)
        }
        return nil
    }

    func handle(_ request: HTTPRequest, _ responder: Responder) {
        let start = ContinuousClock.now
        // `earlyAnswer` has refused everything else.
        let found = Question.route(request.path)
        let response =
            found.map { answer($0.route, $0.subject, query: request.query, request.headers) } ?? Self.unknownPath
        let finished = finished(response, found?.route).compressed(for: request.headers)
        // Before the answer is sent: a client that has the answer may look at the metrics.
        metrics.seconds.observe(start.duration(to: .now))
        responder.respond(finished)
    }

    private static let foreignHost = HTTPResponse.json(400, Array(#"{"error":"foreign_host","parameter":"Host"}"#.utf8))

    private func finished(_ response: HTTPResponse, _ route: Question.Route?) -> HTTPResponse {
        metrics.count(route, status: response.status)
        return response.notStored
    }

    // MARK: Answers

    func answer(
        _ route: Question.Route, _ subject: Substring.UTF8View, query: String?, _ headers: HTTPHeaders = HTTPHeaders()
    ) -> HTTPResponse {
        let question: Question
        let environment: Environment?
        do throws(Question.Flaw) {
            environment = try Question.environment(query, served: shelves.map(\.names.environment))
            question = try Question(route, subject, query: query)
        } catch {
            return Self.refusal(error)
        }
        let asked = shelves.filter { environment == nil || $0.names.environment == environment }
        switch question {
        case .subscription(let id): return subscription(id, asked, headers)
        case .content(let id, let published, let scope): return content(id, published, scope, asked)
        case .history(let id, let before): return history(id, before, asked)
        case .account(let token): return account(token, asked)
        case .metrics(let request):
            return metrics(request, asked[0], asCSV: headers.prefersCSV)
        case .refunds(let id): return refunds(ofSubscription: id, asked)
        case .refund(let id): return refund(id, asked)
        }
    }

    /// The client chose the name of the parameter, so it may contain anything.
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

    private static let unknownPath = HTTPResponse.error(404, "unknown_path")
    /// A longer interval, fewer days or fewer dimensions help.
    private static let seriesTooLarge = HTTPResponse.error(422, "series_too_large")
    private static let unavailable = HTTPResponse.error(503, "unavailable", retryAfterSeconds: retryAfterSeconds)

    /// The found value, or that there is none, with its positions; 503 if these are too old.
    private func respond(_ basis: Basis, _ body: [UInt8]?) -> HTTPResponse {
        if basis.isTooOld {
            var response = Self.failure(503, "behind", basis)
            response.headers.add("Retry-After", String(Self.retryAfterSeconds))
            return response
        }
        return body.map { .json(200, $0) } ?? Self.failure(404, "not_found", basis)
    }

    private static func failure(_ status: Int, _ code: String, _ basis: Basis) -> HTTPResponse {
        var writer = JSONWriter(capacity: 256)
        writer.object { writer in
            writer.member("error", code)
            writer.member("position", json: basis.json)
        }
        return .json(status, writer.bytes)
    }

    /// The first shelf that has it, and the positions of the answer: shelves before it do not have it. nil: the first
    /// shelf cannot be read now, or another one has not been readable since the start.
    ///
    /// If another shelf became unreadable later or is too old, only its position in the answer shows it: a tester's
    /// environment that stands still must not stop answers about production. A client that needs certainty asks for
    /// that environment.
    private func first<Found>(
        of shelves: [Shelf], _ topic: FollowedTopic, _ key: [UInt8],
        _ ask: (PartitionCopy) -> PartitionCopy.Reading<Found?>?
    ) -> (found: (value: Found, shelf: Shelf)?, basis: Basis)? {
        var basis = Basis(at: time.now())
        for shelf in shelves {
            let copy = shelf.copy(for: key)
            let decides = shelf === shelves.first
            guard shelf.isAnswering(at: time.elapsed()), let reading = ask(copy) else {
                if decides || !shelf.hasAnswered { return nil }
                basis.add(shelf, topic, copy.number, .unknown, decides: false)
                continue
            }
            // A value that was found is only as old as its own position, whatever shelf comes first.
            basis.add(shelf, topic, copy.number, reading.place, decides: decides || reading.found != nil)
            if let value = reading.found { return ((value, shelf), basis) }
        }
        return (nil, basis)
    }

    private func subscription(_ id: [UInt8], _ shelves: [Shelf], _ headers: HTTPHeaders) -> HTTPResponse {
        guard let (found, basis) = first(of: shelves, .entitlements, id, { $0.value(.entitlements, id) }) else {
            return Self.unavailable
        }
        guard let (record, shelf) = found else { return respond(basis, nil) }
        let parser = parsers.take()
        defer { parsers.giveBack(parser) }
        guard let answer = SubscriptionAnswer(record, of: shelf.names.environment, at: basis.now, parser) else {
            return Self.unavailable
        }
        if !basis.isTooOld, let tag = answer.tag, headers.match(tag) {
            var response = HTTPResponse(status: 304)
            response.headers.add("ETag", tag)
            return response
        }
        var response = respond(basis, answer.body(position: basis.json))
        if response.status == 200, let tag = answer.tag { response.headers.add("ETag", tag) }
        return response
    }

    private func content(
        _ id: [UInt8], _ published: [Int64], _ scope: ContentScope, _ shelves: [Shelf]
    ) -> HTTPResponse {
        guard let (found, basis) = first(of: shelves, .entitlements, id, { $0.value(.entitlements, id) }) else {
            return Self.unavailable
        }
        guard let (record, _) = found else { return respond(basis, nil) }
        let parser = parsers.take()
        defer { parsers.giveBack(parser) }
        // The follower has checked that the record can be read.
        do throws(JSONFault) { try parser.json.read(record.span) } catch { return Self.unavailable }
        let now = basis.now
        let root = parser.json.root
        let hasAccess = PublishedRecord.hasAccess(root, in: parser.json, at: now)
        let runs = PublishedRecord.runs(of: root, in: parser.json).lasting(at: now, hasAccess: hasAccess)
        var writer = JSONWriter()
        writer.object { writer in
            writer.name("accessible")
            writer.array { writer in
                for date in runs.accessible(published, at: now, scope: scope) { writer.integer(date) }
            }
            writer.member("access", hasAccess)
            writer.member("asOf", now)
            writer.member("position", json: basis.json)
        }
        return respond(basis, writer.bytes)
    }

    /// A known subscription may have no events left.
    private func history(_ id: [UInt8], _ before: Int64?, _ shelves: [Shelf]) -> HTTPResponse {
        let asked = first(of: shelves, .events, id) { copy -> PartitionCopy.Reading<CopiedHistory?>? in
            copy.history(of: id, before: before).map { reading in
                .init(found: reading.found.isKnown ? reading.found.history : nil, place: reading.place)
            }
        }
        guard let (found, basis) = asked else { return Self.unavailable }
        return respond(basis, found.map { $0.value.body(position: basis.json) })
    }

    /// An account without records is answered like any other: only the app's backend knows whether the account exists.
    private func account(_ token: String, _ shelves: [Shelf]) -> HTTPResponse {
        var basis = Basis(at: time.now())
        var records: [CopiedRecords] = []
        for shelf in shelves {
            let copy = shelf.copy(for: Array(token.utf8))
            let decides = shelf === shelves.first
            guard shelf.isAnswering(at: time.elapsed()), let reading = copy.records(ofAccount: token) else {
                if decides || !shelf.hasAnswered { return Self.unavailable }
                basis.add(shelf, .accounts, copy.number, .unknown, decides: false)
                continue
            }
            basis.add(shelf, .accounts, copy.number, reading.place, decides: decides)
            records.append(reading.found)
        }
        let parser = parsers.take()
        defer { parsers.giveBack(parser) }
        let body = AccountAnswer.body(token, records, at: basis.now, position: basis.json, parser)
        // A retry would not help.
        return body.map { respond(basis, $0) } ?? .error(422, "account_too_large")
    }

    /// For one environment: tests must not be mixed with business numbers. Where no worker counts there are no cells,
    /// and the answer says so.
    private func metrics(_ request: MetricsRequest, _ shelf: Shelf, asCSV: Bool) -> HTTPResponse {
        guard shelf.isAnswering(at: time.elapsed()), let (table, places) = shelf.totals.reading else {
            return Self.unavailable
        }
        var basis = Basis(at: time.now())
        for (copy, place) in zip(shelf.copies, places) { basis.add(shelf, .cells, copy.number, place) }
        // A report is expensive, so this is checked first.
        if basis.isTooOld { return respond(basis, nil) }
        if asCSV {
            guard let table = MetricsAnswer.csv(table, request, dayOf: dayOf) else { return Self.seriesTooLarge }
            return .content(200, "text/csv; charset=utf-8", table)
        }
        let body = MetricsAnswer.body(
            table, request, of: shelf.names.environment, dayOf: dayOf, position: basis.json)
        return body.map { .json(200, $0) } ?? Self.seriesTooLarge
    }

    // MARK: Refunds

    /// A known subscription may have no refund requests.
    private func refunds(ofSubscription id: [UInt8], _ shelves: [Shelf]) -> HTTPResponse {
        let asked = first(of: shelves, .consumption, id) { copy -> PartitionCopy.Reading<CopiedRefunds?>? in
            copy.refunds(ofSubscription: id).map { reading in
                let (refunds, isKnown) = reading.found
                return .init(found: refunds.values.isEmpty && !isKnown ? nil : refunds, place: reading.place)
            }
        }
        guard let (found, basis) = asked else { return Self.unavailable }
        guard let (refunds, _) = found else { return respond(basis, nil) }
        let parser = parsers.take()
        defer { parsers.giveBack(parser) }
        return respond(basis, RefundAnswer.body(refunds, position: basis.json, parser))
    }

    /// The request is in the partition of its subscription, which its id does not show.
    private func refund(_ id: [UInt8], _ shelves: [Shelf]) -> HTTPResponse {
        var missed = Basis(at: time.now())
        for shelf in shelves {
            let decides = shelf === shelves.first
            let isAnswering = shelf.isAnswering(at: time.elapsed())
            for copy in shelf.copies {
                guard isAnswering, let reading = copy.refund(id) else {
                    if decides || !shelf.hasAnswered { return Self.unavailable }
                    missed.add(shelf, .consumption, copy.number, .unknown, decides: false)
                    continue
                }
                guard let refund = reading.found else {
                    missed.add(shelf, .consumption, copy.number, reading.place, decides: decides)
                    continue
                }
                var basis = Basis(at: missed.now)
                basis.add(shelf, .consumption, copy.number, reading.place)
                let parser = parsers.take()
                defer { parsers.giveBack(parser) }
                let body = RefundAnswer.body(refund, position: basis.json, parser)
                return body.map { respond(basis, $0) } ?? Self.unavailable
            }
        }
        return respond(missed, nil)
    }
}

extension HTTPResponse {
    /// The answer is valid for a moment and about one customer; missing records may exist a moment later.
    var notStored: HTTPResponse {
        var response = self
        response.headers.add("Cache-Control", "no-store")
        return response
    }
}

extension HTTPHeaders {
    /// CSV is named, and JSON has no greater weight, by its name or by a range.
    fileprivate var prefersCSV: Bool {
        guard let csv = weight(of: "text/csv", in: "Accept"), csv > 0 else { return false }
        let json = ["application/json", "application/*", "*/*"].lazy.compactMap { weight(of: $0, in: "Accept") }.first
        return csv >= json ?? 0
    }
}
