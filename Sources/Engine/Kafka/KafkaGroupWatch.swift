// Reads the offsets of groups in Kafka.

internal import Log
internal import Platform

/// Keeps its client and its connections from one call to the next.
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
            // Newer versions of the protocol report this for a group that does not exist.
            if error.code == .groupNotFound { return [:] }
            throw LogFault(error)
        }
    }

    func close(by deadline: Deadline) -> Bool { admin.close(by: deadline) }
}
