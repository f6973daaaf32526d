// Names, inputs and outputs of the workers of `notifications`, according to the contract.

public import Contract
public import Log
public import Records
public import Runtime

extension WorkerDefinition {
    /// - Parameter app: `perennial/<version>`.
    public init(
        _ worker: WorkerName, _ names: Names, outputs: [(id: TopicID, type: RecordType)], partitions: Int32,
        app: String
    ) {
        let notification = RecordType.notification
        self.init(
            name: worker.rawValue, group: names.group(worker),
            events: InputTopic(
                names.topic(.notifications), kinds: [.init(notification.rawValue, version: notification.version)]),
            outputs: outputs.map { output in
                OutputTopic(names.topic(output.id), schema: output.type.schema)
            },
            changelog: names.topic(.changelog(worker)), deadLetters: names.topic(.deadLetters(worker)),
            partitions: partitions, app: app)
    }
}

/// What distinguishes a replay from its worker.
public struct Shadow: Sendable {
    public var name: ShadowName
    /// Records of an input before these offsets cause no output.
    public var silentBefore: [TopicPartition: NextOffset]

    public init(_ name: ShadowName, silentBefore: [TopicPartition: NextOffset] = [:]) {
        self.name = name
        self.silentBefore = silentBefore
    }
}

extension WorkerDefinition {
    /// The same worker with the group, state and outputs of a replay; its inputs are the live ones. nil: the worker
    /// itself.
    public func shadow(_ shadow: Shadow?) -> WorkerDefinition {
        guard let shadow else { return self }
        var definition = self
        definition.group = shadow.name.shadow(of: group)
        for index in outputs.indices { definition.outputs[index].topic = shadow.name.shadow(of: outputs[index].topic) }
        definition.changelog = shadow.name.shadow(of: changelog)
        definition.deadLetters = shadow.name.shadow(of: deadLetters)
        definition.isShadow = true
        definition.silentBefore = shadow.silentBefore
        return definition
    }
}
