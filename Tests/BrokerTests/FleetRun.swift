// A fleet on hosts of its own, of which one after the other has trouble.

import Foundation
import KafkaTestKit
import Platform
import Testing

final class FleetRun {
    private static let brokerHosts = [11, 12, 13]
    private static let firstWorkerHost = 21
    /// The broker whose disk can be filled.
    private static let smallBroker = 3
    /// Ample: what is not used needs no memory.
    private static let brokerDisk = "16g"
    private static let longestPeriod = 60
    /// In short runs trouble comes more often, so that there is some of most kinds.
    private static let leastRounds = 9

    private let network: FleetNetwork
    private let hosts: [ManyPlace: Int]
    private let stage: FleetStage
    private let brokerDisk: String
    private let scratch: ScratchDirectory
    private let period: Duration

    /// - Parameter program: the path of a release build.
    static func open(seconds: Int, rate: Int, program: String) async throws -> FleetRun {
        var shape = ManyShape(name: "fleet", kinds: ManyKind.allCases, slots: 2, threads: 1, program: program)
        // A story of a subscription needs a few hundred bytes.
        shape.smallDiskMegabytes = 512 + seconds
        let workerHosts = shape.places.indices.map { firstWorkerHost + $0 }
        let hosts = Dictionary(uniqueKeysWithValues: zip(shape.places, workerHosts))
        shape.hosts = hosts.mapValues(FleetNetwork.host)
        let network = try await FleetNetwork.make(hosts: brokerHosts + workerHosts)
        print("fleet: a slow network: \(network.words)")
        try await network.check(workerHosts[0])
        let scratch = try ScratchDirectory("fleet-disk")
        let disk = "\(scratch.path)/broker"
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
        let mounted = try await KafkaTestKit.run("mount", ["-t", "tmpfs", "-o", "size=\(brokerDisk)", "tmpfs", disk])
        try #require(mounted.code == 0, "\(mounted.words)")
        var options = KafkaOptions()
        options.nodes = 3
        options.java = .thrifty
        options.hosts = brokerHosts.map(FleetNetwork.host)
        options.dataDirectories = [smallBroker: "\(disk)/data"]
        let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
        do {
            let stage = try await FleetStage(shape, cluster, seconds: seconds, rate: rate)
            let period = Duration.seconds(min(longestPeriod, seconds / leastRounds))
            return FleetRun(network, hosts, stage, disk, scratch, period)
        } catch {
            await cluster.close()
            throw error
        }
    }

    private init(
        _ network: FleetNetwork, _ hosts: [ManyPlace: Int], _ stage: FleetStage, _ brokerDisk: String,
        _ scratch: ScratchDirectory, _ period: Duration
    ) {
        (self.network, self.hosts, self.stage) = (network, hosts, stage)
        (self.brokerDisk, self.scratch, self.period) = (brokerDisk, scratch, period)
    }

    func play() async throws {
        let fillsDisks = try await stage.crew.mountSmallDisks()
        #expect(fillsDisks)
        do {
            try await disturb()
        } catch {
            try await stage.watch.stop()
            await stage.cluster.close()
            throw error
        }
    }

    func judge() async throws {
        let causes = stage.steps.values.reduce(0, +)
        #expect(causes >= 3, "\(causes) disturbances: a longer run is needed")
        let unseen = FleetLimits.unseen(stage.steps, seconds: stage.seconds)
        #expect(unseen.isEmpty, "these never happened: \(unseen.map(\.rawValue))")
        let kinds = ManyCause.allCases.compactMap { cause in stage.steps[cause].map { "\($0) \(cause.rawValue)" } }
        let report = ManyReport(stage.watch.waits.pauses)
        // The session timeout, and as long as a start takes here.
        #expect(report.longest < .seconds(60))
        try await stage.judge(
            "\(causes) disturbances (\(kinds.joined(separator: ", "))), longest pause \(report.longest.inSeconds) (median/longest: \(report.figures))"
        )
        // What is missing then is not the fault of the processes that wrote it.
        #expect(!stage.cluster.hasSkippedMarkers, "a broker has skipped the markers of a transaction: run it again")
        await stage.cluster.close()
        try await stage.crew.unmount()
    }

    private func disturb() async throws {
        try await stage.open()
        var plan = ManyPlan(
            stage.crew.shape, partitions: Int32(FleetStage.partitions),
            [
                [.cut], [.deaf], [.mute], [.slow], [.kill], [.full], [.brokerDies], [.brokerCut], [.brokerMute],
                [.brokerFull],
            ], first: FleetLimits.networkTroubles)
        while stage.isPosting {
            let begin = ContinuousClock.now
            let next = plan.next()
            try await stage.step(next.cause) { try await take(next) }
            while stage.isPosting, begin.duration(to: .now) < period { try await stage.pass(.milliseconds(500)) }
        }
        try await stage.end()
    }

    private func take(_ step: ManyStep) async throws {
        let broker = stage.cluster.brokers[step.broker]
        let victim = hosts[step.victim]!
        switch step.cause {
        case .cut: try await trouble(.cut, victim, step)
        case .deaf: try await trouble(.deaf, victim, step)
        case .mute: try await trouble(.mute, victim, step)
        case .slow: try await trouble(.slow, victim, step)
        case .brokerCut: try await trouble(.cut, Self.brokerHosts[step.broker], step)
        case .brokerMute: try await trouble(.mute, Self.brokerHosts[step.broker], step)
        case .brokerDies:
            try await broker.kill9()
            try await stage.pass(.seconds(step.seconds))
            try await broker.start()
        case .brokerFull: try await fillBroker(seconds: step.seconds)
        default: try await stage.crew.suffer(step)
        }
    }

    /// 6 to 12 s: less than a session, and more or less than a transaction.
    private func trouble(_ trouble: FleetNetwork.Trouble, _ host: Int, _ step: ManyStep) async throws {
        try await network.begin(trouble, of: host)
        try await stage.pass(.milliseconds(1_500 * step.seconds))
        try await network.end(trouble, of: host)
    }

    /// Leaves no room at all. A broker ends when it cannot write; it is started again when there is room.
    private func fillBroker(seconds: Int) async throws {
        let broker = stage.cluster.brokers[Self.smallBroker - 1]
        try await shrinkBrokerDisk()
        let deadline = Deadline(after: .seconds(60))
        while broker.isRunning, !deadline.hasPassed { try await stage.pass(.milliseconds(100)) }
        #expect(!broker.isRunning, "a broker continues on a full disk")
        try await stage.pass(.seconds(seconds))
        try await resizeDisk(Self.brokerDisk)
        if broker.isRunning { try await broker.kill9() }
        try await broker.start()
    }

    /// To what it has. The broker may write more before that: then it is tried again.
    private func shrinkBrokerDisk() async throws {
        let deadline = Deadline(after: .seconds(20))
        while true {
            let used = try await KafkaTestKit.run("df", ["--output=used", brokerDisk])
            let kilobytes = try #require(
                used.standardOutput.split(separator: "\n").last.flatMap { Int($0.trimmingCharacters(in: .whitespaces)) }
            )
            let resized = try await resize("\(kilobytes + 256)k")
            if resized.code == 0 { return }
            try #require(!deadline.hasPassed, "\(resized.words)")
        }
    }

    private func resizeDisk(_ size: String) async throws {
        let resized = try await resize(size)
        try #require(resized.code == 0, "\(resized.words)")
    }

    private func resize(_ size: String) async throws -> ProgramResult {
        try await KafkaTestKit.run("mount", ["-i", "-o", "remount,size=\(size)", "tmpfs", brokerDisk])
    }
}
