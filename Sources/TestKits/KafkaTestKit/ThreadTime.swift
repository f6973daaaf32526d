// Measures the cost of work independently of the load on the machine.

import Glibc

/// The CPU time that `body` takes on this thread. It is for promises about cost: on a busy machine, elapsed time
/// includes the time of other programs.
public func threadTime<Failure: Error>(of body: () throws(Failure) -> Void) throws(Failure) -> Duration {
    let start = threadTime()
    try body()
    return threadTime() - start
}

private func threadTime() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
