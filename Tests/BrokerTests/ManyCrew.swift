// The processes of a long run and their disks.

import Foundation
import Glibc
import KafkaTestKit
import Platform
import Testing

/// Ingest and the workers.
final class ManyCrew {
    static let zone = "America/New_York"
    /// Small, so that it is full soon, and memory that still grows then shows.
    static let cacheBytes = 16 << 20
    /// The slot whose disk can be filled.
    static let smallSlot = 0

    let shape: ManyShape
    private let installation: Installation
    private let store: MakeBelieveStore
    private let disks: ScratchDirectory
    private var mounts: [String] = []
    private var processes: [ManyPlace: ServiceProcess] = [:]
    private var ingest: ServiceProcess?
    private(set) var port: UInt16 = 0
    /// Processes that ended by themselves, as a worker does when it cannot continue.
    private(set) var endings: [String] = []

    init(_ installation: Installation, _ store: MakeBelieveStore, _ shape: ManyShape = ManyShape()) throws {
        self.shape = shape
        self.installation = installation
        self.store = store
        disks = try ScratchDirectory(shape.name)
    }

    // MARK: Disks

    private func disk(_ place: ManyPlace) -> String { "\(disks.path)/\(place.kind.rawValue)-\(place.slot)" }
    private func copy(_ place: ManyPlace) -> String { "\(disk(place))-copy" }

    /// False: this user may not mount anything, so no disk is filled.
    func mountSmallDisks() async throws -> Bool {
        guard geteuid() == 0 else { return false }
        for kind in shape.kinds {
            let path = disk(ManyPlace(kind: kind, slot: Self.smallSlot))
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            let mounted = try await run(
                "mount", ["-t", "tmpfs", "-o", "size=\(shape.smallDiskMegabytes)m", "tmpfs", path])
            guard mounted.code == 0 else { return false }
            mounts.append(path)
        }
        return true
    }

    /// No process may be using the disk any more.
    func unmount() async throws {
        for path in mounts {
            let unmounted = try await run("umount", ["--lazy", path])
            #expect(unmounted.code == 0, "\(unmounted.words)")
        }
        mounts = []
    }

    private func shell(_ script: String) async throws {
        let result = try await run("sh", ["-ec", script], environment: .inherited(adding: ["LC_ALL": "C"]))
        try #require(result.code == 0, "\(script): \(result.words)")
    }

    /// The directory itself stays: it may be a mounted disk.
    private func wipe(_ path: String) async throws {
        try await shell("mkdir -p \(path); find \(path) -mindepth 1 -delete")
    }

    private func copyAll(from source: String, to target: String) async throws {
        try await wipe(target)
        try await shell("mkdir -p \(source); cp -a \(source)/. \(target)/")
    }

    // MARK: Processes

    func start() async throws {
        port = try Ports.free()
        let ingest = try startIngest()
        self.ingest = ingest
        for place in shape.places { try start(place) }
        try await ingest.waitUntilReady()
    }

    private func startIngest() throws -> ServiceProcess {
        try Scene.startIngest(installation, store, port, program: shape.program)
    }

    func start(_ place: ManyPlace, leaves: Bool = false) throws {
        let own =
            switch place.kind {
            case .entitlements: ["--apps", store.apps]
            case .churn: ["--churn.zone", Self.zone]
            case .consumption: ["--apps", store.apps]
            }
        processes[place] = try ServiceProcess(
            [
                place.kind.rawValue, "--worker.slot", "\(place.slot)", "--worker.threads", "\(shape.threads)",
                "--state.directory", disk(place), "--worker.leave", "\(leaves)",
                "--state.cache.bytes", "\(Self.cacheBytes)",
            ] + own + (shape.settings[place.kind] ?? []) + installation.settings,
            program: shape.program, on: shape.hosts[place] ?? .own)
    }

    /// Everything that runs now, with its name.
    var running: [(name: String, process: ChildProcess)] {
        var running: [(name: String, process: ChildProcess)] = []
        if let ingest { running.append(("ingest", ingest.process)) }
        for (place, worker) in processes { running.append(("\(place)", worker.process)) }
        return running
    }

    func process(_ place: ManyPlace) throws -> ServiceProcess {
        try #require(processes[place], "there is no process \(place)")
    }

    /// `kill -9`. The ending of a process shows whether it had ended by itself a moment before.
    private func kill(_ place: ManyPlace) async throws {
        let child = try process(place).process
        child.killNow()
        let ending = try await child.wait()
        if ending != .killed(signal: SIGKILL) { tell(place, ending) }
    }

    private func tell(_ place: ManyPlace, _ ending: ProcessEnding) {
        let words = "\(place) ended by itself: \(ending)"
        let log = processes[place]?.process.wordsBeforeItsEnd ?? ""
        print("\(shape.name): \(words)\n\(log)")
        endings.append(words)
        // Exit code 3: a worker has said why it cannot continue, and is started again.
        if ending != .exited(code: 3) { Issue.record("\(words)\n\(log)") }
    }

    /// Restarts processes that have ended, as a supervisor does.
    func restartEnded() async throws {
        for (place, process) in processes {
            guard let ending = process.process.ending else { continue }
            tell(place, ending)
            try start(place, leaves: place.slot >= shape.slots)
        }
        if let ingest, let ending = ingest.process.ending {
            Issue.record("ingest ended by itself: \(ending)\n\(ingest.process.lastLines(20))")
            self.ingest = try startIngest()
        }
    }

    func stopIngest() async throws { try await ingest?.stop() }

    func stopWorkers() async throws {
        for place in processes.keys.sorted(by: { "\($0)" < "\($1)" }) { try await process(place).stop() }
    }

    /// Why processes are not ready, and the last log line of each.
    func words(lines: Int = 3) async throws -> String {
        var words: [String] = []
        for (place, process) in processes.sorted(by: { "\($0.key)" < "\($1.key)" }) {
            let reasons: String
            do { reasons = try await process.reasons() } catch { reasons = "it does not answer: \(error)" }
            words.append("\(place): \(reasons)\n\(process.process.lastLines(lines))")
        }
        return words.joined(separator: "\n")
    }

    // MARK: What happens to them

    func suffer(_ step: ManyStep) async throws {
        let victim = step.victim
        switch step.cause {
        case .kill:
            try await kill(victim)
            try start(victim)
        case .rolling: try await roll(victim.kind)
        case .freeze:
            let child = try process(victim).process
            child.suspend()
            try await Task.sleep(for: .seconds(step.seconds))
            child.resume()
        case .join: try await join()
        case .leave: try await leave()
        case .wiped:
            try await kill(victim)
            try await wipe(disk(victim))
            try start(victim)
        case .old:
            try await kill(victim)
            try await copyAll(from: copy(victim), to: disk(victim))
            try start(victim)
        case .foreign: try await swap(victim)
        case .full: try await fill(victim, seconds: step.seconds)
        case .start, .nothing, .brokerDies, .brokerFreezes, .deleted, .cut, .deaf, .mute, .slow, .brokerCut,
            .brokerMute, .brokerFull:
            preconditionFailure("no process suffers this")
        }
    }

    /// Copies each disk while its process is stopped: these are the old disks for later.
    private func roll(_ kind: ManyKind) async throws {
        for slot in 0..<shape.slots {
            let place = ManyPlace(kind: kind, slot: slot)
            try await process(place).stop()
            if !fileExists(copy(place)) { try await copyAll(from: disk(place), to: copy(place)) }
            try start(place)
            try await process(place).waitUntilReady()
        }
    }

    func rollAll() async throws { for kind in shape.kinds { try await roll(kind) } }

    /// One process of each kind joins, so that the slot number alone shows which processes joined.
    private func join() async throws {
        for kind in shape.kinds {
            let place = ManyPlace(kind: kind, slot: shape.slots)
            try start(place, leaves: true)
            try await process(place).waitUntilReady()
        }
    }

    private func leave() async throws {
        for kind in shape.kinds {
            let place = ManyPlace(kind: kind, slot: shape.slots)
            try await process(place).stop()
            processes[place] = nil
        }
    }

    /// Two processes exchange their disks, with stores of partitions that they may have owned once.
    private func swap(_ victim: ManyPlace) async throws {
        let other = ManyPlace(kind: victim.kind, slot: (victim.slot + 1) % shape.slots)
        try await kill(victim)
        try await kill(other)
        let between = "\(disks.path)/between"
        try await copyAll(from: disk(victim), to: between)
        try await copyAll(from: disk(other), to: disk(victim))
        try await copyAll(from: between, to: disk(other))
        try start(victim)
        try start(other)
    }

    private func fill(_ victim: ManyPlace, seconds: Int) async throws {
        let ballast = "\(disk(victim))/ballast"
        // dd ends when no space is left, as intended.
        try await shell("dd if=/dev/zero of=\(ballast) bs=64k 2>/dev/null || true")
        try await Task.sleep(for: .seconds(seconds))
        // A running process may have enough space in the files that it already has; a starting one has not.
        try await kill(victim)
        try start(victim)
        try await Task.sleep(for: .seconds(seconds))
        try await shell("rm \(ballast)")
    }
}
