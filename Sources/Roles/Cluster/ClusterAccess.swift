// How a tool connects to Kafka, and what it says if it cannot.

package import Configuration
package import Kafka
package import Platform

/// A connected administration client, for one call of a tool.
package struct ClusterAccess {
    package let admin: Admin
    package let cluster: Admin.Cluster

    package static let noServers =
        "kafka.bootstrap.servers is not set: name one or more brokers as host:port, separated by commas"

    /// How long a tool waits for Kafka.
    private static let patience: Duration = .seconds(10)

    /// Connects and describes the cluster. Returns early when waiting cannot help. A fault has one line for each cause, each
    /// with what to do; it is wrong usage if the configuration itself is wrong, so that Kafka was not asked.
    package static func connect(
        _ configuration: Configuration, as tool: String, by deadline: Deadline = Deadline(after: patience)
    ) throws(ToolFault) -> ClusterAccess {
        let properties = configuration.clientProperties
        guard let servers = properties.bootstrapServers else { throw ToolFault(.wrongUsage, noServers) }
        let admin: Admin
        do throws(PropertyFault) {
            admin = try Admin(clientID: "perennial-\(tool)", properties: properties)
        } catch {
            throw ToolFault(error)
        }
        while true {
            do throws(KafkaFault) {
                // Short steps, so that a refusal is noticed at once.
                let step = min(deadline.remaining, .milliseconds(500))
                return ClusterAccess(admin: admin, cluster: try admin.cluster(by: Deadline(after: step)))
            } catch {
                let faults = admin.recentFaults
                if deadline.hasPassed || error.remedy == .stopProcess || faults.contains(where: isFinal) {
                    admin.close(by: Deadline(after: .seconds(1)))
                    throw ToolFault(.gaveUp, lines: explain(faults, last: error, servers: servers))
                }
            }
        }
    }

    package func close() {
        admin.close(by: Deadline(after: .seconds(2)))
    }

    /// The description of the cluster, for a tool that needs no more of it.
    package static func cluster(_ configuration: Configuration, as tool: String) throws(ToolFault) -> Admin.Cluster {
        let access = try connect(configuration, as: tool)
        access.close()
        return access.cluster
    }

    /// Waiting helps if a broker is down, but not if it refuses a password.
    private static func isFinal(_ fault: (code: KafkaCode, detail: String)) -> Bool {
        fault.code == .authentication || fault.code == .tls
    }

    /// What librdkafka reported, in plain words; causes before consequences.
    static func explain(
        _ faults: [(code: KafkaCode, detail: String)], last: KafkaFault, servers: String
    ) -> [String] {
        let causes = faults.filter { $0.code != .allBrokersDown }.map { fault in
            switch fault.code {
            case .authentication:
                "Kafka refuses the credentials: check kafka.sasl.username, kafka.sasl.password and kafka.sasl.mechanisms"
                    + " (\(fault.detail))"
            case .tls:
                "TLS fails: check kafka.ssl.ca.location, and kafka.security.protocol (\(fault.detail))"
            case .resolve:
                "a broker's host name cannot be resolved: check kafka.bootstrap.servers=\(servers) (\(fault.detail))"
            case .transport:
                "no connection: check that Kafka runs at kafka.bootstrap.servers=\(servers), that its port is reachable from "
                    + "here, and kafka.security.protocol (\(fault.detail))"
            default:
                "\(fault.code.explanation) (\(fault.detail))"
            }
        }
        if !causes.isEmpty { return causes }
        return [
            "no broker of kafka.bootstrap.servers=\(servers) answers: check that these are addresses of brokers (not of a "
                + "controller), and that no firewall drops the packets (\(last.detail))"
        ]
    }
}
