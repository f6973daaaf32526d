// Reports that no broker answers, or that a right is missing, before the role itself meets it.

package import Configuration
import Kafka
import Platform
package import Service
import Synchronization
package import Telemetry

/// Asks Kafka with a client of its own, because the clients of the role only wait and report nothing. One thread.
package final class ClusterWatch {
    /// Time between two requests. With the next two limits an outage is reported within 8 s: 2 + 2.5 + 2.5 at most, and the pause.
    private static let interval: Duration = .seconds(2)
    private static let answerLimit: Duration = .milliseconds(2_500)
    /// Shorter outages are normal: a broker restarts, a leader moves.
    private static let silenceLimit: Duration = .seconds(4)
    private static let trialLimit: Duration = .seconds(5)
    /// Rights that are granted while a process runs take effect at once.
    private static let trialInterval: Duration = .seconds(10)

    private let configuration: Configuration
    private let rights: RoleRights
    private let connection: Health.Condition
    private let permission: Health.Condition
    private let logger: Logger
    private let admin: Admin
    private var silentSince: ContinuousClock.Instant?
    private var isSilenceTold = false
    private var areRightsTold = false
    /// nil: all rights are known.
    private var nextTrial: ContinuousClock.Instant? = .now

    /// nil: the role has no rights of its own.
    package static func part(
        _ role: CommandName, _ configuration: Configuration, health: Health, logger: Logger
    ) -> ThreadPart? {
        guard let rights = RoleRights(role, configuration) else { return nil }
        let connection = health.condition("kafka")
        let permission = health.condition("rights")
        // The role itself reports that it is starting.
        connection.pass()
        permission.pass()
        return ThreadPart("kafka-watch", isAlone: true) { stop in
            let watch = try ClusterWatch(configuration, rights, connection, permission, logger)
            defer { watch.admin.close(by: Deadline(after: .seconds(2))) }
            while true {
                let answers = watch.look()
                let wait = answers ? interval : .milliseconds(200)
                if stop.wait(until: Deadline(after: wait)) { return }
            }
        }
    }

    private init(
        _ configuration: Configuration, _ rights: RoleRights, _ connection: Health.Condition,
        _ permission: Health.Condition, _ logger: Logger
    ) throws(PropertyFault) {
        self.configuration = configuration
        self.rights = rights
        self.connection = connection
        self.permission = permission
        self.logger = logger
        admin = try Admin(clientID: "perennial-watch", properties: configuration.clientProperties)
    }

    /// Whether a broker answers.
    private func look() -> Bool {
        let begin = ContinuousClock.now
        do throws(KafkaFault) {
            try admin.reach(by: Deadline(after: Self.answerLimit))
        } catch {
            noteSilence(since: silentSince ?? begin, error)
            return false
        }
        endSilence()
        tryRights()
        return true
    }

    // MARK: Brokers

    private func noteSilence(since: ContinuousClock.Instant, _ fault: KafkaFault) {
        silentSince = since
        guard since.duration(to: .now) >= Self.silenceLimit else { return }
        let causes = ClusterAccess.explain(
            admin.recentFaults, last: fault, servers: configuration.clientProperties.bootstrapServers ?? "")
        connection.fail(causes.joined(separator: "; "))
        if isSilenceTold { return }
        isSilenceTold = true
        logger.error("no Kafka broker answers", ["detail": .string(causes.joined(separator: "; "))])
    }

    private func endSilence() {
        silentSince = nil
        admin.forgetFaults()
        guard isSilenceTold else { return }
        isSilenceTold = false
        connection.pass()
        logger.info("Kafka answers again")
    }

    // MARK: Rights

    private func tryRights() {
        guard let due = nextTrial, due <= .now else { return }
        let tried: TriedRights
        do throws(PropertyFault) {
            tried = TriedRights(
                try RightsTrial.answers(
                    to: rights.rights, admin, configuration.clientProperties, by: Deadline(after: Self.trialLimit)))
        } catch {
            nextTrial = nil
            logger.warning("rights in Kafka cannot be tried", ["detail": .string(error.description)])
            return
        }
        nextTrial = tried.lacking.isEmpty && tried.unknown.isEmpty ? nil : .now + Self.trialInterval
        guard !tried.lacking.isEmpty else {
            if areRightsTold, tried.unknown.isEmpty {
                areRightsTold = false
                permission.pass()
                logger.info("Kafka now grants the rights that were missing")
            }
            return
        }
        let words = tried.words.joined(separator: "; ")
        permission.fail("Kafka refuses rights that \(rights.role.rawValue) needs: \(words)")
        if areRightsTold { return }
        areRightsTold = true
        logger.error(
            "Kafka refuses rights that this role needs",
            [
                "detail": .string(words),
                "remedy": .string(tried.lacking.grants(configuration).joined(separator: "; ")),
            ])
    }
}
