// What work costs, whatever else the machine does meanwhile.

import Glibc

/// The processor time that `body` takes on this thread. For promises about the cost of work: on a busy machine the clock on the
/// wall says how long others were served.
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
