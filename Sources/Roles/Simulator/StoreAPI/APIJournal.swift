// The file in which the simulated App Store Server API records requests, for tests.

import Crypto
import JSON
import Platform
import Simulation
import Synchronization

/// One line for each request, written to disk before the answer is sent. Any thread.
package final class APIJournal: Sendable {
    struct Entry: Sendable {
        var at: Int64
        /// The environment of the server: `production`, `sandbox` or `both`.
        var server: String
        var request: APIRequest
        var verdict: APIVerdict
        /// Apple accepted the body.
        var isTaken: Bool
        /// false: the caller got no answer.
        var isAnswered: Bool
        var retryAfter: Int64?
        var trouble: APITrouble?
    }

    private let file: Mutex<OutputFile>

    init(path: String) throws(OutputFault) { file = Mutex(try OutputFile(path: path)) }

    func append(_ entry: Entry) throws(OutputFault) {
        let line = entry.line
        try file.withLock { file throws(OutputFault) in
            try file.append(line: line)
            try file.flush()
        }
    }
}

extension APIJournal.Entry {
    var line: [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("at", at)
            json.member("server", server)
            json.member("method", request.method)
            json.member("path", request.path)
            json.member("version", orNull: verdict.version?.rawValue)
            json.member("transactionId", verdict.transactionId)
            json.member("bundleId", verdict.bundleId)
            json.member("userAgent", request.headers.first { $0.name.lowercased() == "user-agent" }?.value)
            json.member("sha256", hexadecimal(SHA256.digest(request.body.span)))
            // Only valid text is recorded as the body.
            if let body = String(validating: request.body, as: UTF8.self) {
                json.member("body", body)
            } else {
                json.member("body", nil)
                json.member("bodyBase64", String(decoding: Base64.encodeStandard(request.body.span), as: UTF8.self))
            }
            json.member("taken", isTaken)
            json.member("status", orNull: isAnswered ? verdict.status : nil)
            json.member("errorCode", orNull: isAnswered ? verdict.errorCode : nil)
            json.member("message", isAnswered ? verdict.message : nil)
            json.member("retryAfter", orNull: retryAfter)
            json.member("fault", trouble?.rawValue)
        }
        return json.bytes
    }
}
