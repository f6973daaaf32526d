// A look at groups, over Kafka.

internal import Log
internal import Platform

/// Keeps its client, and so its connections, from one look to the next.
final class KafkaGroupWatch: GroupWatch {
    private let admin: Admin

    init(_ name: String, _ properties: ClientProperties) throws(LogFault) {
        do throws(PropertyFault) {
            admin = try Admin(clientID: name, properties: properties)
        } catch {
            throw LogFault(error)
        }
    }

    func positions(of group: String, by deadline: Deadline) throws(LogFault) -> [TopicPartition: NextOffset] {
        do throws(KafkaFault) {
            return try admin.currentOffsets(ofGroup: group, by: deadline)
        } catch {
            // Newer protocols say so of a group that is not there.
            if error.code == .groupNotFound { return [:] }
            throw LogFault(error)
        }
    }

    func close(by deadline: Deadline) -> Bool { admin.close(by: deadline) }
}
