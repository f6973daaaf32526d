// The object behind the opaque pointer of librdkafka's callbacks.

internal import CRDKafka
internal import Log
import Synchronization

/// Something that a client reports outside of the answer to a call.
public enum ClientEvent: Sendable {
    public enum Level: Sendable { case error, warning, info, debug }

    /// A log line of librdkafka or of this layer.
    case log(Level, facility: String, message: String)
    /// Informational: connections open and close, and librdkafka recovers by itself.
    case error(KafkaCode, detail: String)
    /// librdkafka's statistics as raw JSON; see `Statistics`.
    case statistics([UInt8])
    /// A transactional producer in whose transaction a request may have been sent twice was replaced by a new one.
    case producerReplaced(reason: String)
    /// Something that a person should change.
    case advice(String)
}

/// Receives the events of one client, on any of librdkafka's threads: it must be fast, and must not call the client.
public typealias ClientEventHandler = @Sendable (ClientEvent) -> Void

/// The outcome of sending one record.
public struct DeliveryReport: Sendable {
    /// The number passed to `send`.
    public var token: UInt
    public var partition: Int32
    /// The record's offset; negative if it is not known to be written.
    public var offset: Int64
    /// nil: every in-sync replica has acknowledged it. `unconfirmed`: librdkafka assumes that it is written, but no
    /// broker has confirmed it.
    public var failure: KafkaCode?
}

/// The owner of the handle keeps this alive for longer than the handle.
///
/// Threads: the log callback runs on librdkafka's own threads and uses only `events`, `signs` and `faults`, which are
/// safe there. All other callbacks run on the thread that polls, which is the owner's.
final class ClientContext {
    /// Facility of the lines that this layer itself writes.
    static let ownFacility = "CLOSE"

    private let events: ClientEventHandler
    /// Counts signs that a request may have been sent twice: time-outs, lost connections, and everything that the error
    /// callback reports; and records that were refused, after which 2.0.2 continues with a sequence that the broker
    /// does not expect. The value is only compared with earlier ones.
    let signs = Atomic<UInt64>(0)
    private let faults = Mutex<[(code: KafkaCode, detail: String)]>([])

    private let onDelivery: (DeliveryReport) -> Void
    /// Number of records that became `unconfirmed`. Used on the owner's thread.
    private(set) var unconfirmedCount = 0
    /// Memory in which librdkafka may still read values of records. Used on the owner's thread; a client that is being
    /// destroyed has no owner any more, and its context is released after it.
    private var kept: [OutputMemory] = []
    var onRebalance: ((rd_kafka_resp_err_t, UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) -> Void)?

    init(events: @escaping ClientEventHandler, onDelivery: @escaping (DeliveryReport) -> Void = { _ in }) {
        self.events = events
        self.onDelivery = onDelivery
    }

    /// Keeps the memory until `keepNothing`, or as long as the client exists.
    func keep(_ memory: OutputMemory) {
        if kept.last !== memory { kept.append(memory) }
    }

    func keepNothing() { kept.removeAll(keepingCapacity: true) }

    /// Called once per record: nothing is retained on the way from librdkafka to the owner's closure.
    func deliver(_ message: UnsafePointer<rd_kafka_message_t>) {
        var failure = message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaCode(message.pointee.err)
        // librdkafka reports a record as written when the broker has accepted a later one of the same partition, since
        // brokers refuse gaps. This is wrong for the first records of a producer, whose sequence the broker does not
        // know yet: those that it refused while it became leader are lost. Such a record has no offset from a broker,
        // unlike the records that exist.
        if failure == nil, message.pointee.offset < 0 {
            failure = .unconfirmed
            unconfirmedCount += 1
        }
        if let failure, !failure.isPurge { signs.wrappingAdd(1, ordering: .relaxed) }
        onDelivery(
            DeliveryReport(
                token: UInt(bitPattern: message.pointee._private), partition: message.pointee.partition,
                offset: message.pointee.offset, failure: failure))
    }

    func tell(_ event: ClientEvent) { events(event) }

    /// The latest faults, oldest first: what a person needs to know when a call has timed out.
    var recentFaults: [(code: KafkaCode, detail: String)] { faults.withLock { $0 } }

    func forgetFaults() { faults.withLock { $0 = [] } }

    func noteError(_ code: KafkaCode, _ detail: String) {
        signs.wrappingAdd(1, ordering: .relaxed)
        faults.withLock { faults in
            // The same fault repeats with a different "(after 3ms in state CONNECT, 2 identical ...)".
            let cause = detail.firstRange(of: " (after ").map { String(detail[..<$0.lowerBound]) } ?? detail
            if faults.contains(where: { $0.code == code && $0.detail == cause }) { return }
            if faults.count == 8 { faults.removeFirst() }
            faults.append((code, cause))
        }
        events(.error(code, detail: detail))
    }

    func noteLog(_ level: Int32, _ facility: String, _ message: String) {
        // REQTMOUT: requests timed out. FAIL, ERROR, DISCONN: a connection was lost, and the requests in flight are
        // sent again.
        if ["REQTMOUT", "TIMEOUT", "FAIL", "ERROR", "DISCONN", "CONNERR"].contains(facility) {
            signs.wrappingAdd(1, ordering: .relaxed)
        }
        let severity: ClientEvent.Level =
            switch level {
            case ...3: .error
            case 4: .warning
            case 5, 6: .info
            default: .debug
            }
        events(.log(severity, facility: facility, message: message))
    }

    static func from(_ opaque: UnsafeMutableRawPointer?) -> ClientContext {
        Unmanaged<ClientContext>.fromOpaque(opaque!).takeUnretainedValue()
    }
}

// Callbacks are top-level functions: a closure could inherit an actor's isolation and trap on the library's thread.

private func onLog(
    handle: OpaquePointer?, level: Int32, facility: UnsafePointer<CChar>?, message: UnsafePointer<CChar>?
) {
    guard let opaque = rd_kafka_opaque(handle), let facility, let message else { return }
    ClientContext.from(opaque).noteLog(level, String(cString: facility), String(cString: message))
}

private func onError(
    handle: OpaquePointer?, code: Int32, reason: UnsafePointer<CChar>?, opaque: UnsafeMutableRawPointer?
) {
    let detail = reason.map { String(cString: $0) } ?? ""
    ClientContext.from(opaque).noteError(KafkaCode(rawValue: code), detail)
}

private func onStatistics(
    handle: OpaquePointer?, json: UnsafeMutablePointer<CChar>?, size: Int, opaque: UnsafeMutableRawPointer?
) -> Int32 {
    guard let json else { return 0 }
    let bytes = [UInt8](UnsafeRawBufferPointer(start: json, count: size))
    ClientContext.from(opaque).tell(.statistics(bytes))
    return 0  // librdkafka frees its buffer itself
}

private func onDelivery(
    handle: OpaquePointer?, message: UnsafePointer<rd_kafka_message_t>?, opaque: UnsafeMutableRawPointer?
) {
    guard let message, let opaque else { return }
    Unmanaged<ClientContext>.fromOpaque(opaque)._withUnsafeGuaranteedRef { $0.deliver(message) }
}

private func onRebalance(
    handle: OpaquePointer?, code: rd_kafka_resp_err_t, list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?,
    opaque: UnsafeMutableRawPointer?
) {
    guard let list else { return }
    ClientContext.from(opaque).onRebalance?(code, list)
}

extension ClientConf {
    /// Sets the context and the callbacks that every client has.
    mutating func install(_ context: ClientContext, for type: rd_kafka_type_t) {
        rd_kafka_conf_set_opaque(raw, Unmanaged.passUnretained(context).toOpaque())
        rd_kafka_conf_set_log_cb(raw, onLog)
        rd_kafka_conf_set_error_cb(raw, onError)
        rd_kafka_conf_set_stats_cb(raw, onStatistics)
        if type == RD_KAFKA_PRODUCER {
            // Always set, for every record: without it commit and flush wait in steps of 10 ms (at most 89
            // transactions/s).
            rd_kafka_conf_set_dr_msg_cb(raw, onDelivery)
        } else {
            rd_kafka_conf_set_rebalance_cb(raw, onRebalance)
        }
    }
}
