// The names of a replay in Kafka and on disk.

import Cluster
package import Contract

/// One replay of one worker in one environment.
package struct ReplayIdentity: Hashable, Comparable, CustomStringConvertible {
    package let worker: WorkerName
    package let names: Names
    package let shadow: ShadowName

    package init(worker: WorkerName, names: Names, shadow: ShadowName) {
        self.worker = worker
        self.names = names
        self.shadow = shadow
    }

    package var group: String { shadow.shadow(of: names.group(worker)) }

    /// Keeps what all processes of the replay must agree on. A replay exists while this topic exists: it is created first and deleted
    /// last.
    package var planTopic: String { shadow.shadow(of: Self.planTopic(of: worker, names)) }

    private static func planTopic(of worker: WorkerName, _ names: Names) -> String {
        "\(names.prefix).\(names.environment.rawValue).\(worker.rawValue).plan"
    }

    /// The topics that it writes to, each with its live topic.
    package var topics: [(live: String, shadow: String)] {
        (worker.outputs + [.changelog(worker), .deadLetters(worker)]).map {
            (names.topic($0), shadow.shadow(of: names.topic($0)))
        }
    }

    package var changelog: String { shadow.shadow(of: names.topic(.changelog(worker))) }
    package var deadLetters: String { shadow.shadow(of: names.topic(.deadLetters(worker))) }

    package var description: String { "\(shadow) of \(worker.rawValue)" }

    package static func < (left: ReplayIdentity, right: ReplayIdentity) -> Bool {
        (left.names.environment.rawValue, left.worker.rawValue, left.shadow)
            < (right.names.environment.rawValue, right.worker.rawValue, right.shadow)
    }

    /// Every replay that has one of these topics.
    package static func all(in topics: [String], of installation: [Names]) -> [ReplayIdentity] {
        var found: Set<ReplayIdentity> = []
        for (live, shadow) in topics.compactMap({ ShadowName.split($0) }) {
            for names in installation {
                for worker in WorkerName.allCases {
                    let identity = ReplayIdentity(worker: worker, names: names, shadow: shadow)
                    if identity.topics.contains(where: { $0.live == live }) || live == planTopic(of: worker, names) {
                        found.insert(identity)
                    }
                }
            }
        }
        return found.sorted()
    }
}
