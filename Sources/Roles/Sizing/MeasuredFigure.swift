// What a figure of the sizing is: a number that `make bench` has measured, and never one that somebody thought of.

public struct MeasuredFigure: Sendable {
    public let value: Double
    public let unit: String
    /// The part of the row `sizing` that measures it.
    public let part: String

    init(_ value: Double, _ unit: String, _ part: String) {
        self.value = value
        self.unit = unit
        self.part = part
    }
}

/// All figures of one run of the row `sizing`.
public struct MeasuredFigures: Sendable {
    /// The row of `make bench` that measures them.
    public static let row = "sizing"

    public let date: String
    public let machine: String
    public let figures: [FigureName: MeasuredFigure]

    public init(date: String, machine: String, figures: [FigureName: MeasuredFigure]) {
        self.date = date
        self.machine = machine
        self.figures = figures
    }

    public subscript(_ name: FigureName) -> Double {
        // SizingTests checks that every name has a figure.
        figures[name]!.value
    }
}

/// The names of all figures. `Tests/Benchmarks` measures each of them.
public enum FigureName: String, Sendable, CaseIterable {
    // MARK: How many records a notification causes, in a simulated mix of lives

    case notificationsPerRenewal
    case entitlementsPerNotification, entitlementEventsPerNotification, accountsPerNotification
    case churnCellsPerNotification, churnEventsPerNotification
    case entitlementsStatesPerNotification, churnStatesPerNotification, consumptionStatesPerNotification
    case consumptionRecordsPerRequest

    // MARK: Bytes of a record in its batch on the disk of a broker

    case notificationBytes, signedBytes, tickBytes, usageBytes
    case entitlementBytes, entitlementEventBytes, accountBytes
    case churnCellBytes, churnEventBytes, consumptionBytes
    case entitlementsStateBytes, churnStateBytes, consumptionStateBytes
    /// What a commit writes into the changelog for each partition that it touches.
    case noteBytes
    /// What a batch takes besides its records, and what the end of a transaction takes in each partition.
    case batchBytes, markerBytes

    // MARK: State that is kept

    /// Of one subscription or purchase: a part that each has, and a part for each of its notifications.
    case entitlementsKeptBytes, entitlementsKeptBytesPerNotification
    case churnKeptBytes, churnKeptBytesPerNotification
    case consumptionKeptBytes, consumptionKeptBytesPerNotification
    case churnKeptBytesPerCell
    /// Bytes on the disk of a worker for each byte of these records.
    case diskPerStateByte

    // MARK: Processor time

    /// In cores, of a process that has worked and has nothing to do.
    case ingestRest, entitlementsRest, churnRest, consumptionRest, apiRest, brokerRest
    /// In microseconds.
    case ingestPerBatch, ingestPerNotification, ingestPerArchivedNotification
    case entitlementsPerCommit, entitlementsPerRecord
    case churnPerCommit, churnPerRecord
    case consumptionPerCommit, consumptionPerRecord, consumptionPerDecision, consumptionPerAnswer
    case apiPerCommit, apiPerNotification, apiPerQuestion
    case brokerPerCommit, brokerPerNotification, brokerPerArchivedNotification
    /// The most that one thread of a worker commits.
    case commitsASecond

    // MARK: Memory

    case ingestMemory, brokerMemory
}
