// Records and bytes of each topic.

public import Contract

/// One topic. Bytes are those of one copy.
public struct TopicSizing: Sendable {
    public let id: TopicID
    public let retention: Retention
    public let recordsADay: Double
    /// In the busiest time.
    public let recordsASecondAtPeak: Double
    public let bytesADay: Double
    /// The last record of each key, if only that is kept.
    public let liveBytes: Double
    /// On the disk after the years of the installation.
    public let keptBytes: Double
    /// In all copies.
    public let keptBytesInAllCopies: Double
}

/// How bytes of a topic stay.
enum Keeping {
    /// Kafka's own, which no topic but the changelogs changes: a segment is closed when it is full, or after a week.
    static let segmentBytes = Double(1 << 30)
    static let segmentDays = 7.0
    static let changelogSegmentBytes = Double(64 << 20)
    /// Kafka compacts a log when half of it is old (`min.cleanable.dirty.ratio` 0.5).
    static let greatestCompactedShare = 2.0

    /// - Parameters:
    ///   - written: bytes a day.
    ///   - live: bytes of the last record of each key.
    static func kept(
        _ definition: TopicDefinition, written: Double, live: Double, years: Int, partitions: Int
    ) -> Double {
        let all = written * Installation.daysInYear * Double(years)
        let full = isChangelog(definition) ? changelogSegmentBytes : segmentBytes
        // Only closed segments are deleted or compacted.
        let open = min(full * Double(partitions), written * segmentDays)
        switch definition.retention {
        case .forEver: return all
        case .days(let days): return min(all, written * Double(days) + open)
        case .lastOfKey: return min(all, live * greatestCompactedShare + open)
        }
    }

    private static func isChangelog(_ definition: TopicDefinition) -> Bool {
        if case .changelog = definition.id { true } else { false }
    }
}

/// The records that one installation writes.
struct TopicFormulas {
    let installation: Installation
    let figures: MeasuredFigures
    let rates: Rates

    /// Subscriptions and purchases that are known after all years.
    var keys: Double {
        let customers = installation.customers
        return Double(customers.subscribers) + customers.churned + customers.purchasesADay * days
    }

    private var days: Double { Installation.daysInYear * Double(installation.decisions.years) }

    /// At most one for each partition and kind of a day, and no more than are written.
    var cells: Double {
        let mostOfDay = Double(installation.decisions.plan.partitions) * Double(installation.customers.kinds)
        return days * min(mostOfDay, rates.notifications * figures[.churnCellsPerNotification])
    }

    /// Notifications of all years: what is kept of a subscription grows with each of them.
    private var notificationsOfAllYears: Double { rates.notifications * days }

    /// The last record of each key of a worker's state, in bytes, without batches.
    func keptState(of worker: WorkerName) -> Double {
        switch worker {
        case .entitlements:
            keys * figures[.entitlementsKeptBytes]
                + notificationsOfAllYears * figures[.entitlementsKeptBytesPerNotification]
        case .churn:
            keys * figures[.churnKeptBytes] + notificationsOfAllYears * figures[.churnKeptBytesPerNotification]
                + cells * figures[.churnKeptBytesPerCell]
        // It remembers every purchase: any of them may be asked about.
        case .consumption:
            keys * figures[.consumptionKeptBytes]
                + notificationsOfAllYears * figures[.consumptionKeptBytesPerNotification]
        }
    }

    /// How many keys these are.
    private func keptKeys(of worker: WorkerName) -> Double {
        switch worker {
        case .entitlements, .consumption: keys
        case .churn: keys + cells
        }
    }

    private static func bytesPerRecord(_ id: TopicID) -> FigureName? {
        switch id {
        case .notifications: .notificationBytes
        case .signed: .signedBytes
        case .usage: .usageBytes
        case .entitlements: .entitlementBytes
        case .entitlementEvents: .entitlementEventBytes
        case .accounts: .accountBytes
        case .churnCells: .churnCellBytes
        case .churnEvents: .churnEventBytes
        // An attempt was not measured: it is taken to be as large as a step of a request.
        case .consumption, .consumptionAttempts: .consumptionBytes
        case .changelog(.entitlements): .entitlementsStateBytes
        case .changelog(.churn): .churnStateBytes
        case .changelog(.consumption): .consumptionStateBytes
        case .rejected, .deadLetters: nil
        }
    }

    /// A record of usual traffic arrives alone: it has a batch, and a transaction's end, of its own.
    private var alone: Double { figures[.batchBytes] + figures[.markerBytes] }

    private func recordBytes(_ id: TopicID) -> Double {
        let measured = Self.bytesPerRecord(id).map { figures[$0] } ?? 0
        return switch id {
        case .notifications: installation.decisions.notificationBytes ?? measured
        case .signed: installation.decisions.signedBytes ?? measured
        default: measured
        }
    }

    private func recordsADay(_ id: TopicID) -> Double {
        let n = rates.notifications
        return switch id {
        case .notifications: n + rates.ticks
        case .signed: installation.decisions.archivesSignedPayloads ? n : 0
        case .usage: rates.usage
        case .entitlements: n * figures[.entitlementsPerNotification]
        case .entitlementEvents: n * figures[.entitlementEventsPerNotification]
        case .accounts: n * figures[.accountsPerNotification]
        case .churnCells: n * figures[.churnCellsPerNotification]
        case .churnEvents: n * figures[.churnEventsPerNotification]
        // The row decides requests and does not send: `sent` is one more.
        case .consumption: rates.refundRequests * (figures[.consumptionRecordsPerRequest] + 1)
        case .consumptionAttempts: rates.refundRequests
        case .changelog(let worker): states(of: worker) + rates.read
        case .rejected, .deadLetters: 0
        }
    }

    /// Records of keys in a worker's changelog; the others are notes.
    private func states(of worker: WorkerName) -> Double {
        switch worker {
        case .entitlements: rates.notifications * figures[.entitlementsStatesPerNotification]
        case .churn: rates.notifications * figures[.churnStatesPerNotification]
        // `sent` and the attempt each change the state once more.
        case .consumption:
            (rates.notifications + rates.usage) * figures[.consumptionStatesPerNotification] + rates.refundRequests * 2
        }
    }

    private func bytesADay(_ id: TopicID) -> Double {
        switch id {
        case .notifications:
            return rates.notifications * (recordBytes(id) + figures[.batchBytes])
                + rates.ticks * (figures[.tickBytes] + figures[.batchBytes])
        case .signed, .usage: return recordsADay(id) * (recordBytes(id) + figures[.batchBytes])
        case .changelog(let worker):
            // A state is in the batch and the transaction of its partition's note. Ticks cause notes, too.
            return states(of: worker) * recordBytes(id) + rates.read * (figures[.noteBytes] + alone)
        default: return recordsADay(id) * (recordBytes(id) + alone)
        }
    }

    private func liveBytes(_ id: TopicID) -> Double {
        let batch = figures[.batchBytes]
        return switch id {
        case .entitlements, .accounts: keys * (recordBytes(id) + batch)
        case .churnCells: cells * (recordBytes(id) + batch)
        case .changelog(let worker):
            keptState(of: worker) + keptKeys(of: worker) * batch
                + Double(installation.decisions.plan.partitions) * (figures[.noteBytes] + batch)
        default: 0
        }
    }

    var topics: [TopicSizing] {
        let decisions = installation.decisions
        return TopicCatalogue.definitions.compactMap { definition in
            let id = definition.id
            guard Self.bytesPerRecord(id) != nil else { return nil }
            let (records, bytes) = (recordsADay(id), bytesADay(id))
            let live = liveBytes(id)
            let kept = Keeping.kept(
                definition, written: bytes, live: live, years: decisions.years, partitions: decisions.plan.partitions)
            // Ticks do not come more often in a busy time.
            let even = evenRecordsADay(id)
            return TopicSizing(
                id: id, retention: definition.retention, recordsADay: records,
                recordsASecondAtPeak: ((records - even) * decisions.peakFactor + even) / Installation.secondsInDay,
                bytesADay: bytes, liveBytes: live, keptBytes: kept,
                keptBytesInAllCopies: kept * Double(decisions.plan.replicationFactor))
        }
    }

    private func evenRecordsADay(_ id: TopicID) -> Double {
        switch id {
        case .notifications, .changelog: rates.ticks
        default: 0
        }
    }
}
