// What the workers of `notifications` are called, read and write, as the contract has it.

public import Contract
public import Runtime

extension WorkerDefinition {
    /// - Parameter app: `perennial/<version>`.
    public init(
        _ worker: Contract.Worker, _ names: Names, outputs: [(id: TopicID, type: RecordType)], partitions: Int32,
        app: String
    ) {
        let notification = RecordType.notification
        self.init(
            name: worker.rawValue, group: names.group(worker),
            events: InputTopic(
                names.topic(.notifications), kinds: [.init(notification.rawValue, version: notification.version)]),
            outputs: outputs.map { output in
                OutputTopic(names.topic(output.id), type: output.type.rawValue, schema: output.type.schema)
            },
            changelog: names.topic(.changelog(worker)), deadLetters: names.topic(.deadLetters(worker)),
            partitions: partitions, app: app)
    }
}
