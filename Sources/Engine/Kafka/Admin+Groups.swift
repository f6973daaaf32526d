// Groups: their members and their offsets.

internal import CRDKafka
public import Log
public import Platform

extension Admin {
    public struct Group: Sendable {
        /// As Kafka names it: `Empty`, `Stable`, `PreparingRebalance`, `CompletingRebalance`, `Dead`, `Unknown`.
        public var state: String
        public var members: [Member]
    }

    public struct Member: Sendable {
        public var clientID: String
        public var instanceID: String?
        public var host: String
        public var partitions: [TopicPartition]
    }

    /// The names of all groups that the client may see, sorted. If one broker cannot list its groups, this throws: an
    /// incomplete list would look complete.
    public func groups(by deadline: Deadline) throws(KafkaFault) -> [String] {
        try ask(RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS, "list groups", by: deadline) { options, queue in
            rd_kafka_ListConsumerGroups(raw, options, queue)
        } read: { event throws(KafkaFault) in
            var count = 0
            if let errors = rd_kafka_ListConsumerGroups_result_errors(event, &count), count > 0 {
                try KafkaFault.check(copying: errors[0], "list groups")
            }
            let groups = rd_kafka_ListConsumerGroups_result_valid(event, &count)
            return (0..<count).map { String(cString: rd_kafka_ConsumerGroupListing_group_id(groups![$0])) }.sorted()
        }
    }

    /// A group without members that never committed is `Dead`.
    public func describe(group: String, by deadline: Deadline) throws(KafkaFault) -> Group {
        try askCoordinator(
            of: group, RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS, "describe group \(group)", by: deadline
        ) { client, options, queue in
            group.withCString { name in
                var names: UnsafePointer<CChar>? = name
                rd_kafka_DescribeConsumerGroups(client, &names, 1, options, queue)
            }
        } read: { event throws(KafkaFault) in
            var count = 0
            let groups = rd_kafka_DescribeConsumerGroups_result_groups(event, &count)
            guard let described = groups?[0], count == 1 else {
                throw KafkaFault(.retrySameCall, .groupNotFound, operation: "describe group \(group)")
            }
            try KafkaFault.check(copying: rd_kafka_ConsumerGroupDescription_error(described), "describe group \(group)")
            let state = rd_kafka_consumer_group_state_name(rd_kafka_ConsumerGroupDescription_state(described))
            let members = (0..<rd_kafka_ConsumerGroupDescription_member_count(described)).map { index in
                member(rd_kafka_ConsumerGroupDescription_member(described, index))
            }
            return Group(state: String(cString: state!), members: members.sorted { $0.clientID < $1.clientID })
        }
    }

    private func member(_ member: OpaquePointer?) -> Member {
        let assignment = rd_kafka_MemberDescription_assignment(member)
        let partitions = rd_kafka_MemberAssignment_partitions(assignment)
        return Member(
            clientID: String(cString: rd_kafka_MemberDescription_client_id(member)),
            instanceID: rd_kafka_MemberDescription_group_instance_id(member).map { String(cString: $0) },
            host: String(cString: rd_kafka_MemberDescription_host(member)),
            partitions: partitions.map { UnsafeMutablePointer(mutating: $0).partitions.sorted() } ?? [])
    }

    /// Every offset that the group has committed. Waits for open transactions, which may still change them, and throws
    /// `retrySameCall` if one is still open at the deadline. A partition whose first commit is still open is left out.
    public func offsets(ofGroup group: String, by deadline: Deadline) throws(KafkaFault) -> [TopicPartition: NextOffset]
    {
        // librdkafka 2.0.2 does not ask for stable offsets when it asks for those of all partitions. So this lists the
        // partitions first, and then asks for the offsets of each.
        let known = try currentOffsets(ofGroup: group, by: deadline).keys.sorted()
        while !known.isEmpty {
            do throws(KafkaFault) {
                return try offsets(ofGroup: group, in: known, by: deadline)
            } catch {
                if error.code != .unstableOffsets || deadline.hasPassed { throw error }
                pause(for: .milliseconds(20))
            }
        }
        return [:]
    }

    /// The offsets committed at this moment, without waiting for open transactions: for display only.
    public func currentOffsets(ofGroup group: String, by deadline: Deadline) throws(KafkaFault)
        -> [TopicPartition: NextOffset]
    {
        try offsets(ofGroup: group, in: nil, stableOnly: false, by: deadline)
    }

    private static let attemptLimit: Duration = .seconds(5)

    /// A broker that does not coordinate the group (yet, or any longer) says so or never answers. Then the client looks
    /// up the coordinator again.
    private func offsets(
        ofGroup group: String, in partitions: [TopicPartition]?, stableOnly: Bool = true, by deadline: Deadline
    ) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        let list = TopicPartitionList(capacity: partitions?.count ?? 0)
        for partition in partitions ?? [] { list.append(partition) }
        var request = rd_kafka_ListConsumerGroupOffsets_new(group, partitions == nil ? nil : list.raw)
        defer { rd_kafka_ListConsumerGroupOffsets_destroy(request) }
        while true {
            let attempt = Deadline(after: min(Self.attemptLimit, deadline.remaining))
            do throws(KafkaFault) {
                return try askCoordinator(
                    of: group, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, "read offsets of \(group)", by: attempt,
                    stableOnly: stableOnly
                ) { client, options, queue in
                    rd_kafka_ListConsumerGroupOffsets(client, &request, 1, options, queue)
                } read: { event throws(KafkaFault) in
                    var count = 0
                    let groups = rd_kafka_ListConsumerGroupOffsets_result_groups(event, &count)
                    return try offsets(in: count == 1 ? groups?[0] : nil, "read offsets of \(group)")
                }
            } catch {
                guard error.code.wantsAnotherCoordinator || error.code == .timedOut, !deadline.hasPassed else {
                    throw error
                }
            }
            pause(for: .milliseconds(100))
        }
    }

    /// Sets offsets of a group without members. If it has members, the broker refuses (`UNKNOWN_MEMBER_ID`).
    public func setOffsets(
        ofGroup group: String, to positions: [TopicPartition: NextOffset], by deadline: Deadline
    ) throws(KafkaFault) {
        let list = TopicPartitionList(capacity: positions.count)
        for (partition, next) in positions.sorted(by: { $0.key < $1.key }) {
            list.append(partition, offset: next.value)
        }
        var request = rd_kafka_AlterConsumerGroupOffsets_new(group, list.raw)
        defer { rd_kafka_AlterConsumerGroupOffsets_destroy(request) }
        _ = try askCoordinator(
            of: group, RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, "set offsets of \(group)", by: deadline
        ) { client, options, queue in
            rd_kafka_AlterConsumerGroupOffsets(client, &request, 1, options, queue)
        } read: { event throws(KafkaFault) in
            var count = 0
            let groups = rd_kafka_AlterConsumerGroupOffsets_result_groups(event, &count)
            return try offsets(in: count == 1 ? groups?[0] : nil, "set offsets of \(group)")
        }
    }

    private func offsets(
        in result: OpaquePointer?, _ operation: String
    ) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        try KafkaFault.check(copying: rd_kafka_group_result_error(result), operation)
        var offsets: [TopicPartition: NextOffset] = [:]
        guard let list = rd_kafka_group_result_partitions(result) else { return offsets }
        for index in 0..<Int(list.pointee.cnt) {
            let element = list.pointee.elems[index]
            try KafkaFault.check(element.err, "\(operation) in \(TopicPartition(element))")
            if element.offset >= 0 { offsets[TopicPartition(element)] = NextOffset(element.offset) }
        }
        return offsets
    }

    /// Deletes a group without members.
    public func delete(group: String, by deadline: Deadline) throws(KafkaFault) {
        var request = rd_kafka_DeleteGroup_new(group)
        defer { rd_kafka_DeleteGroup_destroy(request) }
        try askCoordinator(
            of: group, RD_KAFKA_ADMIN_OP_DELETEGROUPS, "delete group \(group)", by: deadline
        ) { client, options, queue in
            rd_kafka_DeleteGroups(client, &request, 1, options, queue)
        } read: { event throws(KafkaFault) in
            var count = 0
            let groups = rd_kafka_DeleteGroups_result_groups(event, &count)
            try KafkaFault.check(
                copying: rd_kafka_group_result_error(count == 1 ? groups?[0] : nil), "delete group \(group)")
        }
    }
}
