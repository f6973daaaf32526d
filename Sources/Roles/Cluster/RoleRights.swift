// The rights in Kafka that each role needs. docs/reference/kafka-rights.md says the same.

package import Configuration
package import Contract
package import Kafka

extension [Right] {
    /// The calls of `kafka-acls.sh` that grant these rights.
    package func grants(_ configuration: Configuration) -> [String] {
        grants(
            servers: configuration.clientProperties.bootstrapServers ?? "HOST:PORT",
            user: configuration.clientProperties.userName)
    }
}

/// The rights of one role, each once.
package struct RoleRights {
    package let role: CommandName
    package private(set) var rights: [Right] = []

    /// nil: the role does not stay connected to Kafka.
    package init?(_ role: CommandName, _ configuration: Configuration) {
        guard CommandName.roles.contains(role) else { return nil }
        self.role = role
        let both = Contract.Environment.allCases.map { Names(prefix: configuration.topicPlan.prefix, environment: $0) }
        switch role {
        case .ingest: for names in both { addIngest(names) }
        case .clock: for names in both { addClock(names) }
        case .api:
            for environment in configuration.namedEnvironments {
                addAPI(Names(prefix: configuration.topicPlan.prefix, environment: environment))
            }
        default:
            guard let worker = WorkerName(rawValue: role.rawValue) else { return nil }
            add(worker, configuration.names)
        }
    }

    private mutating func add(_ names: Names, _ topics: [TopicID], _ operations: Right.Operation...) {
        for topic in topics {
            for operation in operations { add(Right(operation, .topic(names.topic(topic)))) }
        }
    }

    private mutating func add(_ right: Right) {
        if !rights.contains(right) { rights.append(right) }
    }

    private mutating func addIngest(_ names: Names) {
        add(names, [.notifications, .signed, .rejected, .usage], .describe, .write)
        addClock(names)
    }

    private mutating func addClock(_ names: Names) {
        add(names, [.notifications], .describe, .read, .write)
        add(Right(.read, .group(names.clockGroup)))
    }

    private mutating func addAPI(_ names: Names) {
        add(
            names, [.entitlements, .entitlementEvents, .accounts, .churnCells, .consumption], .describe,
            .describeConfigs, .read)
        // To see how far its workers are: offsets of their groups, ends and next records of their input.
        add(names, [.notifications], .describe, .read)
        for worker in WorkerName.allCases { add(Right(.describe, .group(names.group(worker)))) }
        add(Right(.describe, .group(names.apiGroup)))
    }

    private mutating func add(_ worker: WorkerName, _ names: Names) {
        add(names, worker.inputs, .describe, .read)
        // Table records that arrived in the wrong partition are published again.
        add(names, Array(worker.inputs.dropFirst()), .write)
        add(names, worker.outputs + [.changelog(worker), .deadLetters(worker)], .describe, .write)
        // A restore checks whether the changelog is compacted.
        add(names, [.changelog(worker)], .read, .describeConfigs)
        // Its sender reads the decisions.
        if worker == .consumption { add(names, [.consumption], .read) }
        add(Right(.read, .group(names.group(worker))))
        add(Right(.write, .transactionalIDs(prefix: names.group(worker))))
    }

    /// The topics that the role uses.
    package var topics: Set<String> {
        Set(rights.compactMap { if case .topic(let name) = $0.resource { name } else { nil } })
    }
}

extension WorkerName {
    /// The topics that consumers read.
    package var outputs: [TopicID] {
        switch self {
        case .entitlements: [.entitlements, .entitlementEvents, .accounts]
        case .churn: [.churnCells, .churnEvents]
        case .consumption: [.consumption]
        }
    }
}

/// The result of trying the rights.
package struct TriedRights {
    /// Sorted by resource.
    package let lacking: [Right]
    /// Rights that Kafka neither granted nor refused, and why. Rights on a missing topic are not listed.
    package let unknown: [(right: Right, code: KafkaCode)]

    package init(_ answers: [Right: RightsTrial.Answer]) {
        func order(_ left: Right, _ right: Right) -> Bool {
            (left.resource, left.operation) < (right.resource, right.operation)
        }
        lacking = answers.filter { $0.value == .refused }.keys.sorted(by: order)
        unknown = answers.compactMap { right, answer in
            guard case .unknown(let code) = answer, code != .unknownTopicOrPartition else { return nil }
            return (right, code)
        }.sorted { order($0.right, $1.right) }
    }

    /// One line for each resource: "topic a: Read, Write".
    package var words: [String] {
        Dictionary(grouping: lacking, by: \.resource).sorted { $0.key < $1.key }.map { resource, rights in
            "\(resource): \(rights.map(\.operation.rawValue).joined(separator: ", "))"
        }
    }
}
