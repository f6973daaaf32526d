// How a tool that works on a cluster ends when it cannot do what it was asked for.

import Kafka
import Platform
import Settings

/// Why a call ended early, one cause a line.
struct ToolFault: Error, Equatable {
    let code: ExitCode
    let lines: [String]

    init(_ code: ExitCode, _ lines: String...) {
        self.code = code
        self.lines = lines
    }

    init(_ code: ExitCode, lines: [String]) {
        self.code = code
        self.lines = lines
    }

    init(_ unreachable: ClusterAccess.Unreachable) {
        code = unreachable.isWrongUsage ? .wrongUsage : .gaveUp
        lines = unreachable.causes
    }

    init(_ fault: KafkaFault) { self.init(.gaveUp, fault.words) }

    init(_ fault: SettingFault) { self.init(.wrongUsage, fault.description) }

    init(_ fault: PropertyFault) { self.init(.wrongUsage, fault.description) }

    /// Does what asks Kafka; its faults end the call.
    static func asking<Answer: ~Copyable>(_ body: () throws(KafkaFault) -> Answer) throws(ToolFault) -> Answer {
        do throws(KafkaFault) {
            return try body()
        } catch {
            throw ToolFault(error)
        }
    }

    /// An election is over sooner.
    private static let patience: Duration = .seconds(10)

    /// Asks again what wants to be asked again: while leaders change, or a topic is new, brokers refuse for a moment.
    static func persisting<Answer>(
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
