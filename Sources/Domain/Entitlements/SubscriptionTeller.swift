// What the worker does with one notification or timer of one subscription.

public import Contract
internal import Crypto
public import JSON
internal import Notices
internal import Records
public import SubscriptionHistory

/// Merges news into what is kept of a subscription, and tells what follows: the value of `entitlements`, the events, the
/// record of `accounts`, the bytes to keep, and when time alone changes the answer.
///
/// Everything is computed in memory that is used again for the next subscription: in a steady state nothing is
/// allocated. The order of calls for a notification: `read`, `load`, `mergeNews`, `tell`. For a timer: `load`, `tell`.
public struct SubscriptionTeller: ~Copyable {
    /// The version of the kept bytes; the worker's `stateFormat`. The bytes: sequence, what was published, history.
    public static let format: UInt8 = 1

    /// The next value needs a greater number, so a state with the greatest number is refused.
    private static let sequences = 0..<Int64.max

    /// Where the record of the notification is.
    public struct Origin {
        let partition: Int32
        let offset: Int64

        public init(partition: Int32, offset: Int64) {
            self.partition = partition
            self.offset = offset
        }
    }

    private let environment: Contract.Environment
    private let reader = NoticeReader()
    private var course: Course
    /// The news of the notification read last.
    public private(set) var news = NoticeNews()

    /// The sequence of the last value that was written; 0: none was written.
    private var sequence: Int64 = 0
    private var told: Told?

    /// The answer has changed: `value` is to be written.
    public private(set) var hasNewValue = false
    /// The account that no longer has the subscription.
    public private(set) var accountLeft: TextPlace?
    /// The account that has the subscription, if `accountValue` is to be written.
    public private(set) var accountBound: TextPlace?
    /// When time alone may cause a record; nil: never.
    public private(set) var nextStep: Int64?
    public private(set) var events = Scratch<EntitlementEvent>(capacity: EntitlementEvent.Kind.allCases.count)

    private var record = JSONWriter(capacity: 4_096)
    private var account = JSONWriter(capacity: 4_096)
    private var event = JSONWriter(capacity: 1_024)
    private var state = ByteWriter(capacity: 4_096)
    private var historyStart = 0
    /// Where the cause is in `record`; empty: time alone is the cause.
    private var causeRange = 0..<0
    /// For the events: what was published before, and when this is published.
    private var before: (state: Entitlement.State, access: Bool)?
    private var after: (state: Entitlement.State, access: Bool) = (.expired, false)
    private var clock: Int64 = 0

    public init(_ rules: EntitlementRules, _ environment: Contract.Environment) {
        self.environment = environment
        course = Course(rules)
    }

    // MARK: Steps

    /// Reads the value of a record of `notifications`, which stays in the document until outputs are made.
    public mutating func read(_ document: borrowing JSONDocument) { reader.read(document, into: &news) }

    /// Loads the kept state of the subscription; nil: no state. Keep the bytes in place until all outputs are made.
    ///
    /// - Parameter format: the format in which the bytes were written. A new format must still read the one before it.
    /// - Returns: false: the bytes are not a valid state.
    public mutating func load(_ kept: UnsafeBufferPointer<UInt8>?, format: UInt8) -> Bool {
        sequence = 0
        told = nil
        course.history.removeAll()
        guard let kept else { return true }
        guard format == Self.format else { return false }
        var reader = KeptReader(kept)
        let number = reader.signed()
        let isTold = reader.byte()
        guard reader.isValid, Self.sequences.contains(number), isTold <= 1 else { return false }
        var toldBefore: Told?
        if isTold == 1 {
            guard let read = Told(&reader) else { return false }
            toldBefore = read
        }
        guard course.history.read(&reader) else { return false }
        sequence = number
        told = toldBefore
        return true
    }

    /// - Returns: false: nothing is new.
    public mutating func mergeNews() -> Bool { course.history.merge(news) }

    /// Computes everything that is to be written.
    /// - Parameters:
    ///   - originalTransactionId: the key of the subscription: valid UTF-8.
    ///   - clock: the clock of the partition.
    ///   - origin: the record whose news were merged; nil: time alone is the cause.
    /// - Returns: false: no transaction is known, so only the state is to be written.
    @discardableResult
    public mutating func tell(
        _ originalTransactionId: UnsafeBufferPointer<UInt8>, at clock: Int64, _ origin: Origin?
    ) -> Bool {
        hasNewValue = false
        accountLeft = nil
        accountBound = nil
        nextStep = nil
        events.removeAll()
        let hasAnswer = course.setRows()
        if hasAnswer {
            self.clock = clock
            let standing = course.standing(at: clock)
            let hash = writeValue(standing.answer, originalTransactionId, origin)
            let signedDate = origin == nil ? nil : news.signedDate
            standing.addEvents(since: told, told: signedDate ?? clock, to: &events)
            before = told.map { ($0.state, $0.access) }
            after = (standing.answer.state, standing.answer.access)
            let now = standing.told(after: told, events, answer: hash)
            if let old = told?.account, old != now.account { accountLeft = old }
            if hasNewValue { accountBound = now.account }
            told = now
            nextStep = course.nextStep(after: clock)
        }
        writeState()
        return hasAnswer
    }

    /// Apple's status came with the newest renewal info, and is not the state that the history gives. To be asked after
    /// `tell`.
    public var disagreesWithStatus: Bool {
        guard let status = news.status, let signed = news.signedDate, let key = news.renewalKey,
            course.history.renewals.last?.key == key
        else { return false }
        return course.agrees(withStatus: status, at: signed) == false
    }

    // MARK: What is to be written

    /// The value for `entitlements`.
    public var value: [UInt8] { record.bytes }
    /// The value for `accounts`: the same without the cause.
    public var accountValue: [UInt8] { account.bytes }
    /// What is to be kept, until the next call.
    public var stateBytes: UnsafeBufferPointer<UInt8> { state.written }

    /// The part of it that is the history, copied.
    public var historyBytes: ArraySlice<UInt8> { Array(state.written)[historyStart...] }

    /// Writes the answer, `sequence`, `asOf`, and `cause` as the last member.
    /// - Returns: the first 8 bytes of the SHA-256 of the answer, without a closing bracket. Equal for two values that
    ///   differ only in the members behind the answer.
    private mutating func writeValue(
        _ answer: Answer, _ originalTransactionId: UnsafeBufferPointer<UInt8>, _ origin: Origin?
    ) -> UInt64 {
        var record = JSONWriter()
        swap(&record, &self.record)
        record.removeAll()
        var hash: UInt64 = 0
        var (accountEnd, causeStart) = (0, 0)
        record.object { record in
            course.write(answer, originalTransactionId: originalTransactionId, environment, to: &record)
            hash = SHA256.beginning(of: record.bytes.span)
            hasNewValue = hash != told?.answer
            if hasNewValue { sequence += 1 }
            record.member("sequence", sequence)
            record.member("asOf", clock)
            accountEnd = record.bytes.count
            record.name("cause")
            causeStart = record.bytes.count
            writeCause(origin, to: &record)
        }
        causeRange = origin == nil ? 0..<0 : causeStart..<record.bytes.count - 1
        if hasNewValue {
            account.removeAll()
            record.bytes.withUnsafeBufferPointer {
                account.object(of: UnsafeBufferPointer(rebasing: $0[1..<accountEnd]))
            }
        }
        swap(&record, &self.record)
        return hash
    }

    /// Inlined: a call would pass a copy of everything here.
    @inline(__always) private func writeCause(_ origin: Origin?, to json: inout JSONWriter) {
        guard let origin else { return json.null() }
        Cause.write(
            notificationUUID: news.notificationUUID?.bytes, type: news.type?.bytes, subtype: news.subtype?.bytes,
            signedDate: news.signedDate, partition: origin.partition, offset: origin.offset, to: &json)
    }

    /// The value of one of `events`.
    /// - Parameter id: unique in the topic, and always the same for the same event.
    public mutating func eventValue(
        _ number: Int, id: UnsafeBufferPointer<UInt8>, _ originalTransactionId: UnsafeBufferPointer<UInt8>
    ) -> [UInt8] {
        var json = JSONWriter()
        swap(&json, &event)
        json.removeAll()
        let event = events[number]
        json.object { json in
            json.member("v", RecordType.entitlementEvent.version)
            json.member("id", utf8: id)
            json.member("originalTransactionId", utf8: originalTransactionId)
            json.member("kind", event.kind.rawValue)
            json.member("at", event.at)
            json.member("historic", event.isHistoric(at: clock))
            json.name("before")
            write(before, to: &json)
            json.name("after")
            write(after, to: &json)
            json.member("sequence", sequence)
            json.name("cause")
            if causeRange.isEmpty {
                json.null()
            } else {
                record.bytes.withUnsafeBufferPointer { json.json(UnsafeBufferPointer(rebasing: $0[causeRange])) }
            }
        }
        swap(&json, &self.event)
        return self.event.bytes
    }

    private func write(_ standing: (state: Entitlement.State, access: Bool)?, to json: inout JSONWriter) {
        guard let standing else { return json.null() }
        json.object { json in
            json.member("state", standing.state.rawValue)
            json.member("access", standing.access)
        }
    }

    private mutating func writeState() {
        state.removeAll()
        state.signed(sequence)
        state.byte(told == nil ? 0 : 1)
        if let told { told.write(to: &state) }
        historyStart = state.written.count
        course.history.write(to: &state)
    }

    // MARK: For a promotion

    /// A state that continues after another value.
    /// - Returns: nil: the bytes are not a valid state, or no value could follow the other one.
    public mutating func state(_ kept: [UInt8], format: UInt8, after sequence: Int64) -> [UInt8]? {
        kept.withUnsafeBufferPointer { bytes in
            guard load(bytes, format: format), Self.sequences.contains(sequence) else { return nil }
            if self.sequence == sequence { return kept }
            self.sequence = sequence
            writeState()
            return Array(stateBytes)
        }
    }
}
