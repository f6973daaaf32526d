// A client that waits, for the thread of a test.

public import HTTPClient
import Platform
import Synchronization

extension HTTPClient {
    /// Blocks until the answer is there or the time limits of the configuration have passed. Must not be called from a
    /// completion.
    public func answer(to request: Request) throws(HTTPClientFault) -> Response {
        let answered = Latch()
        let result = Mutex<Result<Response, HTTPClientFault>?>(nil)
        send(request) { outcome in
            result.withLock { $0 = outcome }
            answered.open()
        }
        answered.wait()
        // Set before the latch was opened.
        return try result.withLock { $0! }.get()
    }
}
