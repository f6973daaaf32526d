// Keeps one environment ticking: members of the group come and go, the reason of the last trouble stays.

import Contract
import Kafka
import Platform
import Telemetry

/// Makes a member, lets it work, and makes another one when it cannot go on. One thread.
struct TickerKeeper {
    /// Between two looks at topics that are not as they should be: nobody is disturbed by looking.
    private static let topicPause: Duration = .seconds(2)
    /// Each joining takes the partitions from all members for a moment, so it is not tried often.
    private static let joinPauses: [Duration] = [.seconds(1), .seconds(5), .seconds(15), .seconds(30)]
    /// To leave the group, so that the others take over at once instead of after the session.
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

    /// Throws only for properties of which no client can be made.
    func run(until stop: Latch) throws(PropertyFault) {
        var failures = 0
        var isRefused = false
        while !stop.isOpen {
            let member = try TickerMember(configuration, names: names, metrics: metrics, logger: logger)
            member.onSuccess = { [setTrouble] success in
                if success == .ticked { isRefused = false }
                // A clock that was refused is not right before a tick was taken.
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

/// Why a member cannot go on.
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
