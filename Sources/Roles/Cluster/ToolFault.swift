// How a tool ends if it cannot do what it was asked for.

package import Kafka
package import Platform
package import Settings

/// Why a call ended early, one line for each cause.
package struct ToolFault: Error, Equatable {
    package let code: ExitCode
    package let lines: [String]

    package init(_ code: ExitCode, _ lines: String...) {
        self.code = code
        self.lines = lines
    }

    package init(_ code: ExitCode, lines: [String]) {
        self.code = code
        self.lines = lines
    }

    package init(_ fault: KafkaFault) { self.init(.gaveUp, fault.words) }

    package init(_ fault: SettingFault) { self.init(.wrongUsage, fault.description) }

    package init(_ fault: PropertyFault) { self.init(.wrongUsage, fault.description) }

    package static func missing(topic: String) -> ToolFault {
        ToolFault(
            .wrongUsage,
            "the topic \(topic) does not exist: check topic.prefix, or create it with perennial topics apply")
    }

    /// Runs a request to Kafka; a fault of Kafka ends the call.
    package static func asking<Answer: ~Copyable>(_ body: () throws(KafkaFault) -> Answer) throws(ToolFault) -> Answer {
        do throws(KafkaFault) {
            return try body()
        } catch {
            throw ToolFault(error)
        }
    }

    /// The election of a leader takes less time.
    private static let patience: Duration = .seconds(10)

    /// Retries retriable errors: while leaders change, or a topic is new, brokers refuse requests for a moment.
    package static func persisting<Answer>(
        until deadline: Deadline? = nil, _ body: () throws(KafkaFault) -> Answer
    ) throws(ToolFault) -> Answer {
        let end = Deadline(after: min(patience, deadline?.remaining ?? patience))
        while true {
            do throws(KafkaFault) {
                return try body()
            } catch {
                if error.remedy != .retrySameCall || end.hasPassed { throw ToolFault(error) }
                pause(for: .milliseconds(100))
            }
        }
    }
}
