// Traps and locks, for tests that observe the end of a process.

import Glibc
import Platform

/// `trap NOTES TOPIC OFFSET WAY`: processes a record and ends in one of the ways of `end`.
/// `lock FILE`: takes the lock, says so and waits to be killed.
func runProbe(_ arguments: [String]) -> ExitCode {
    switch (arguments.first, arguments.count) {
    case ("trap", 5):
        guard let topic = UInt32(arguments[2]), let offset = Int64(arguments[3]) else { return .wrongUsage }
        return trap(arguments[1], topic, offset, arguments[4])
    case ("lock", 2): return lock(arguments[1])
    default: return .wrongUsage
    }
}

/// A handler like Swift's: it must be able to get its signal while it runs.
private func handleSegmentationFaults() {
    var action = sigaction()
    action.sa_flags = SA_NODEFER | SA_ONSTACK
    action.__sigaction_handler.sa_handler = { number in
        var blocked = sigset_t()
        pthread_sigmask(SIG_BLOCK, nil, &blocked)
        printData(sigismember(&blocked, number) == 0 ? "not blocked" : "blocked")
    }
    sigaction(SIGSEGV, &action, nil)
}

private func trap(_ path: String, _ topic: UInt32, _ offset: Int64, _ way: String) -> ExitCode {
    if way == "null-handled" { handleSegmentationFaults() }
    do throws(SystemFailure) { try CrashNotes.install() } catch { return say(error) }
    let worker = WorkerThread.start("works") {
        let notes = try CrashNotes(path: path)
        // The earlier record does not matter.
        notes.working(topic: topic &+ 1, offset: offset &+ 1)
        notes.working(topic: topic, offset: offset)
        let isIdle = way.hasPrefix("idle-")
        if isIdle { notes.idle() }
        end(isIdle ? String(way.dropFirst(5)) : way)
        notes.idle()
    }
    // A signal from outside must hit the working thread.
    var all = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_BLOCK, &all, nil)
    while !worker.isFinished { pause(for: .milliseconds(5)) }
    if case .failure(let error) = worker.result { return say(error) }
    return .done
}

private func end(_ way: String) {
    switch way {
    case "fatal-error": fatalError("as asked")
    case "array-index":
        let empty = [UInt8](repeating: 0, count: Int(getpid()) & 0)
        exit(Int32(empty[Int(getpid())]))
    case "null", "null-handled": UnsafeMutablePointer<Int>(bitPattern: UInt(getpid()) & 0xff8 | 8)!.pointee = 1
    case "abort": abort()
    case "overflow": exit(Int32(truncatingIfNeeded: descend(1)))
    case "fpe": raise(SIGFPE)
    case "bus": raise(SIGBUS)
    case "wait":
        printData("waiting")
        while true { pause(for: .seconds(1)) }
    default: break
    }
}

/// Recursion deeper than any stack, in a form that no optimizer turns into a loop.
@inline(never)
private func descend(_ depth: Int) -> Int {
    withUnsafeTemporaryAllocation(of: Int.self, capacity: 64) { room in
        room.initialize(repeating: depth)
        let below = descend(depth &+ room[depth & 63])
        return below &+ room[below & 63]
    }
}

private func lock(_ path: String) -> ExitCode {
    do throws(FileLockFault) {
        let lock = try FileLock.take(path)
        printData("locked")
        while true { pause(for: .seconds(1)) }
        lock.release()
    } catch { return say(error) }
}

private func say(_ error: any Error) -> ExitCode {
    printMessage("\(error)")
    return .gaveUp
}
