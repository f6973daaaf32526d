// The rights of a client, as in Kafka's access control lists.

/// One operation on one resource.
public struct Right: Sendable, Hashable {
    public enum Resource: Sendable, Hashable {
        case topic(String)
        case group(String)
        /// All ids with this prefix.
        case transactionalIDs(prefix: String)
    }

    /// The names that `kafka-acls.sh` uses.
    public enum Operation: String, Sendable, CaseIterable, Comparable {
        case describe = "Describe"
        case describeConfigs = "DescribeConfigs"
        case read = "Read"
        case write = "Write"

        private var place: Int { Self.allCases.firstIndex(of: self)! }
        public static func < (left: Self, right: Self) -> Bool { left.place < right.place }
    }

    public var operation: Operation
    public var resource: Resource

    public init(_ operation: Operation, _ resource: Resource) {
        self.operation = operation
        self.resource = resource
    }
}

extension Right.Resource: Comparable, CustomStringConvertible {
    private var order: (Int, String) {
        switch self {
        case .topic(let name): (0, name)
        case .group(let name): (1, name)
        case .transactionalIDs(let prefix): (2, prefix)
        }
    }

    public static func < (left: Self, right: Self) -> Bool { left.order < right.order }

    public var description: String {
        switch self {
        case .topic(let name): "topic \(name)"
        case .group(let name): "group \(name)"
        case .transactionalIDs(let prefix): "transactional ids that begin with \(prefix)"
        }
    }

    /// The option of `kafka-acls.sh`.
    fileprivate var option: String {
        switch self {
        case .topic(let name): "--topic \(name)"
        case .group(let name): "--group \(name)"
        case .transactionalIDs(let prefix): "--transactional-id \(prefix) --resource-pattern-type prefixed"
        }
    }
}

extension [Right] {
    /// The calls of `kafka-acls.sh` that grant these rights, one for each resource. `Read` and `Write` include
    /// `Describe`.
    public func grants(servers: String, user: String?) -> [String] {
        let resources = Dictionary(grouping: self, by: \.resource).mapValues { Set($0.map(\.operation)) }
        return resources.sorted { $0.key < $1.key }.map { resource, operations in
            var needed = operations
            if needed.contains(.read) || needed.contains(.write) { needed.remove(.describe) }
            let words = needed.sorted().map { "--operation \($0.rawValue)" }.joined(separator: " ")
            return
                "kafka-acls.sh --bootstrap-server \(servers) --add --allow-principal User:\(user ?? "NAME") \(words) "
                + resource.option
        }
    }
}
