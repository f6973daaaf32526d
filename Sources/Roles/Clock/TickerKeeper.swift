// Keeps one environment ticking: members of the group are replaced, the reason of the last fault stays.

import Contract
import Kafka
import Platform
import Telemetry

/// Creates a member, runs it, and creates another one if it fails. For use by one thread.
struct TickerKeeper {
    /// Pause between two looks at wrong topics: a look disturbs no other member.
    private static let topicPause: Duration = .seconds(2)
    /// Each join causes a rebalance of all members, so it is not retried often.
    private static let joinPauses: [Duration] = [.seconds(1), .seconds(5), .seconds(15), .seconds(30)]
    /// Time for leaving the group, so that the others take over at once instead of after the session timeout.
    private static let closeLimit: Duration = .seconds(8)

    private let configuration: Ticker.Configuration
    private let names: Names
    private let metrics: TickerMetrics
    private let logger: Logger
    private let setTrouble: (TickerTrouble?) -> Void

    init(
        _ configuration: Ticker.Configuration, names: Names, metrics: TickerMetrics, logger: Logger,
        setTrouble: @escaping (TickerTrouble?) -> Void
    ) {
        self.configuration = configuration
        self.names = names
        self.metrics = metrics
        self.logger = logger
        self.setTrouble = setTrouble
    }

    /// Throws only if no client can be created with the properties.
    func run(until stop: Latch) throws(PropertyFault) {
        var failures = 0
        var isRefused = false
        while !stop.isOpen {
            let member = try TickerMember(configuration, names: names, metrics: metrics, logger: logger)
            member.isTimeInDoubt = isRefused
            member.onSuccess = { [setTrouble] success in
                if success == .ticked { isRefused = false }
                // After a refused timestamp the clock counts as right only when a tick was accepted.
                if isRefused { return }
                if success != .topicSeen { failures = 0 }
                setTrouble(nil)
            }
            let fault: TickerFault
            do throws(TickerFault) {
                try member.run(until: stop)
                member.close(by: Deadline(after: Self.closeLimit))
                return
            } catch {
                member.close(by: Deadline(after: Self.closeLimit))
                fault = error
            }
            isRefused = isRefused || fault.cause == .timestamp
            setTrouble(TickerTrouble(fault.words, isTimeRefused: isRefused))
            metrics.count(fault.cause)
            let isKnown = fault.cause == .topics && failures > 0
            logger.log(
                isKnown ? .debug : .warning, "not ticking",
                [
                    "environment": .string(names.environment.rawValue), "reason": .string(fault.words),
                ])
            let pause =
                fault.cause == .topics
                ? Self.topicPause : Self.joinPauses[min(failures, Self.joinPauses.count - 1)]
            failures += 1
            stop.wait(for: pause)
        }
    }
}

/// Why a member cannot continue.
struct TickerFault: Error {
    let cause: TickerMetrics.Cause
    /// For people, with what to do.
    let words: String

    init(_ cause: TickerMetrics.Cause, _ words: String) {
        self.cause = cause
        self.words = words
    }

    init(_ fault: KafkaFault, topic: String) {
        switch fault.code {
        case .unknownTopicOrPartition, .unknownPartition:
            self.init(.topics, "the topic \(topic) is missing: run perennial topics apply")
        case .invalidTimestamp:
            self.init(.timestamp, fault.words)
        default:
            self.init(.kafka, fault.words)
        }
    }
}
