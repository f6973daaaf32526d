// A service with the admin server and one part with the given behaviour:
//
//   service-probe BEHAVIOUR STOP-DEADLINE-MS
//
// quick: stops at once. slow: takes 400 ms. never: does not stop. unclean: its stop throws. fail: fails after SIGHUP.
// ends: returns after SIGHUP. over: requests its own end after SIGHUP. refuse: cannot start. stuck: its start never returns.
// taken: needs something that another process holds. alone: its stop waits for a part that is stopped after it, but that nobody needs.
//
// Standard output tells the test what happens, one line each: "listens PORT", "reload", "stop WORKER".

import Administration
import Platform
import Service
import Telemetry

struct ProbeFault: Error, CustomStringConvertible {
    let description: String
}

/// Behaves as the first argument says.
final class Worker: ServicePart {
    let name = "worker"
    private let behaviour: String
    private let hangUp: Latch
    private let ended = Latch()

    init(_ behaviour: String, hangUp: Latch) {
        self.behaviour = behaviour
        self.hangUp = hangUp
    }

    func prepare() throws {
        if behaviour == "taken" { throw ProbeFault(description: "the port is taken") }
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        if behaviour == "refuse" { throw ProbeFault(description: "no store at /nowhere") }
        if behaviour == "stuck" { Latch().wait() }
        if behaviour == "fail" {
            WorkerThread.start("fails") { [hangUp] in
                hangUp.wait()
                failed(ProbeFault(description: "the disk is full"))
            }
        }
    }

    func stop(by deadline: Deadline) throws {
        printData("stop worker")
        switch behaviour {
        case "slow": pause(for: .milliseconds(400))
        case "never": ended.wait()
        case "alone": hangUp.wait()
        case "unclean": throw ProbeFault(description: "the last commit was refused")
        default: break
        }
    }
}

func runProbe(_ arguments: [String]) -> ExitCode {
    guard arguments.count == 3, let milliseconds = Int(arguments[2]) else {
        printMessage("usage: service-probe BEHAVIOUR STOP-DEADLINE-MS")
        return .wrongUsage
    }
    let (health, metrics, logger) = (Health(), Metrics(), Logger(level: .debug))
    metrics.buildInfo(version: "0.0.0-probe")
    let reloads = metrics.counter("perennial_probe_reloads_total", help: "Reloads.")
    guard let listen = ListenAddress("127.0.0.1:0") else { return .wrongUsage }
    let admin = AdminServer(listen: listen, health: health, metrics: metrics, logger: logger)
    let hangUp = Latch()
    var parts: [any ServicePart] = [admin, Announcement(admin), Worker(arguments[1], hangUp: hangUp)]
    if arguments[1] == "alone" {
        let loop = ThreadPart("loop", isAlone: true) { stop in
            stop.wait()
            hangUp.open()
        }
        parts.insert(loop, at: 0)
    }
    if arguments[1] == "ends" { parts.append(ThreadPart("loop") { _ in hangUp.wait() }) }
    var configuration = Service.Configuration()
    configuration.stopDeadline = .milliseconds(milliseconds)
    let service = Service(parts, health: health, logger: logger, configuration: configuration) {
        reloads.add()
        printData("reload")
        hangUp.open()
    }
    if arguments[1] == "over" {
        WorkerThread.start("over") {
            hangUp.wait()
            service.stop()
        }
    }
    return service.run()
}

/// Prints the port as soon as there is one, before the worker starts.
final class Announcement: ServicePart {
    let name = "announcement"
    private let admin: AdminServer

    init(_ admin: AdminServer) { self.admin = admin }

    func start(failed: @escaping @Sendable (any Error) -> Void) { printData("listens \(admin.address?.port ?? 0)") }
    func stop(by deadline: Deadline) { printData("stop announcement") }
}
