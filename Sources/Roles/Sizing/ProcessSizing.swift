// Processes of each role: how many, and what each needs.

import Contract

public enum SizedRole: String, Sendable, CaseIterable {
    case ingest, entitlements, churn, consumption, api

    var worker: WorkerName? {
        switch self {
        case .entitlements: .entitlements
        case .churn: .churn
        case .consumption: .consumption
        case .ingest, .api: nil
        }
    }
}

public struct ProcessSizing: Sendable {
    public let role: SizedRole
    /// So many that the others carry the busiest time if one is lost.
    public let processes: Int
    /// Of all processes together.
    public let coresOnAverage: Double
    public let coresAtPeak: Double
    /// Of each process.
    public let memoryBytes: Double
    /// Of each process, when one is lost and the others have its part.
    public let diskBytes: Double
    /// Threads that the busiest time needs, if they are more than there are partitions; nil: there are enough.
    public let lacksPartitions: Int?
}

struct ProcessFormulas {
    let installation: Installation
    let figures: MeasuredFigures
    let rates: Rates
    let topics: TopicFormulas
    /// Threads of all processes of each worker, once they are known.
    var workerThreads: [(worker: WorkerName, threads: Double)] = []

    /// What a worker takes under a backlog, as docs/operate/run-workers.md says it.
    static func memory(cacheBytes: Double, threads: Double) -> Double {
        cacheBytes * 5 / 4 + Double(192 << 20) + threads * Double(64 << 20)
    }
    /// Ingest collects records for 20 ms before it sends them.
    static let batchesASecond = 50.0

    /// Records a second, on average and in the busiest time. Ticks come evenly.
    private func perSecond(_ aDay: Double, even: Double = 0, at factor: Double) -> Double {
        (aDay * factor + even) / Installation.secondsInDay
    }

    /// A commit costs much more than a record, and a thread can make only so many: so where records arrive faster than that, they
    /// share commits.
    /// - Parameters:
    ///   - threads: of all processes.
    ///   - factor: 1: on average.
    func workload(of worker: WorkerName, threads: Double, at factor: Double) -> Double {
        let read = self.read(by: worker, at: factor)
        let commits = min(read, threads * figures[.commitsASecond])
        let (perCommit, perRecord) = Self.names(of: worker)
        var microseconds = commits * figures[perCommit] + read * figures[perRecord]
        if worker == .consumption {
            microseconds +=
                perSecond(rates.refundRequests, at: factor)
                * (figures[.consumptionPerDecision] + figures[.consumptionPerAnswer])
        }
        return microseconds / 1e6
    }

    /// Of all workers together.
    func commits(at factor: Double) -> Double {
        workerThreads.reduce(0) {
            $0 + min(read(by: $1.worker, at: factor), $1.threads * figures[.commitsASecond])
        }
    }

    /// Records a second. Only the consumption worker reads usage and attempts.
    private func read(by worker: WorkerName, at factor: Double) -> Double {
        let more = worker == .consumption ? perSecond(rates.usage + rates.refundRequests * 2, at: factor) : 0
        return perSecond(rates.notifications, even: rates.ticks, at: factor) + more
    }

    private static func names(of worker: WorkerName) -> (commit: FigureName, record: FigureName) {
        switch worker {
        case .entitlements: (.entitlementsPerCommit, .entitlementsPerRecord)
        case .churn: (.churnPerCommit, .churnPerRecord)
        case .consumption: (.consumptionPerCommit, .consumptionPerRecord)
        }
    }

    /// Cores of each process, however many there are. The read API follows all commits of the workers in every process.
    private func ofEach(_ role: SizedRole, at factor: Double) -> Double {
        guard role == .api else { return rest(role) }
        let notifications = perSecond(rates.notifications, at: factor)
        return rest(role)
            + (commits(at: factor) * figures[.apiPerCommit] + notifications * figures[.apiPerNotification]) / 1e6
    }

    private func rest(_ role: SizedRole) -> Double {
        switch role {
        case .ingest: figures[.ingestRest]
        case .entitlements: figures[.entitlementsRest]
        case .churn: figures[.churnRest]
        case .consumption: figures[.consumptionRest]
        case .api: figures[.apiRest]
        }
    }

    /// Cores that the processes of a role divide among themselves.
    private func work(_ role: SizedRole, threads: Double, at factor: Double) -> Double {
        let notifications = perSecond(rates.notifications, at: factor)
        switch role {
        case .ingest:
            let name: FigureName =
                installation.decisions.archivesSignedPayloads ? .ingestPerArchivedNotification : .ingestPerNotification
            // A usage record has no signature; it is counted as a notification.
            let records = notifications + perSecond(rates.usage, at: factor)
            let batches = min(records, threads * Self.batchesASecond)
            return (batches * figures[.ingestPerBatch] + records * figures[name]) / 1e6
        case .api: return installation.customers.questionsASecond * factor * figures[.apiPerQuestion] / 1e6
        case .entitlements: return workload(of: .entitlements, threads: threads, at: factor)
        case .churn: return workload(of: .churn, threads: threads, at: factor)
        case .consumption: return workload(of: .consumption, threads: threads, at: factor)
        }
    }

    /// Of all roles. The workers come first: how often they commit decides what others have to do.
    static func all(
        _ installation: Installation, _ figures: MeasuredFigures, _ rates: Rates, _ topics: TopicFormulas
    ) -> (processes: [ProcessSizing], formulas: ProcessFormulas) {
        var formulas = ProcessFormulas(installation: installation, figures: figures, rates: rates, topics: topics)
        var found: [SizedRole: ProcessSizing] = [:]
        for role in SizedRole.allCases {
            guard let worker = role.worker else { continue }
            let process = formulas.processes(of: role)
            found[role] = process
            let threads = Double(process.processes * installation.decisions.workerThreads)
            formulas.workerThreads.append((worker, threads))
        }
        for role in SizedRole.allCases where role.worker == nil { found[role] = formulas.processes(of: role) }
        return (SizedRole.allCases.compactMap { found[$0] }, formulas)
    }

    /// Two, or as many as the busiest time needs and one more: then one may be lost. A process is counted as able to use one core
    /// for each of its threads.
    static func processes(forCores cores: Double, threads: Int) -> Int {
        max(2, Int((cores / Double(threads)).rounded(.up)) + 1)
    }

    func processes(of role: SizedRole) -> ProcessSizing {
        let decisions = installation.decisions
        let threads = role.worker == nil ? 1 : decisions.workerThreads
        var count = 2
        // More processes can commit more often, which costs more. This ends: the cost is limited by the rate.
        while true {
            let shared = work(role, threads: Double(count * threads), at: decisions.peakFactor)
            let needed = Self.processes(forCores: shared, threads: threads)
            if needed <= count { break }
            count = needed
        }
        func cores(at factor: Double) -> Double {
            Double(count) * ofEach(role, at: factor) + work(role, threads: Double(count * threads), at: factor)
        }
        let used = (count - 1) * threads
        let lacks = role.worker != nil && used > decisions.plan.partitions ? used : nil
        return ProcessSizing(
            role: role, processes: count, coresOnAverage: cores(at: 1), coresAtPeak: cores(at: decisions.peakFactor),
            memoryBytes: memory(role), diskBytes: disk(role, processes: count), lacksPartitions: lacks)
    }

    private func memory(_ role: SizedRole) -> Double {
        switch role {
        case .ingest: figures[.ingestMemory] + installation.decisions.ingestBufferedBytes
        case .entitlements, .churn, .consumption:
            Self.memory(
                cacheBytes: installation.decisions.stateCacheBytes,
                threads: Double(installation.decisions.workerThreads))
        // As much again for counters in memory and answers, as in deploy/kubernetes. It is not measured.
        case .api: 2 * installation.decisions.stateCacheBytes
        }
    }

    private func disk(_ role: SizedRole, processes: Int) -> Double {
        switch role {
        case .ingest: 0
        case .entitlements, .churn, .consumption:
            topics.keptState(of: role.worker!) * figures[.diskPerStateByte] / Double(processes - 1)
        // Each has a whole copy of these topics.
        case .api:
            topics.topics.filter { Self.followed.contains($0.id) }
                .reduce(0) { $0 + ($1.retention == .lastOfKey ? $1.liveBytes : $1.keptBytes) }
                * figures[.diskPerStateByte]
        }
    }

    /// The topics that the read API keeps on its disk. It has the cells of churn in its memory, too.
    static let followed: [TopicID] = [.entitlements, .entitlementEvents, .accounts, .consumption, .churnCells]
}
