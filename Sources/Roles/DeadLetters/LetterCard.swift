// `dead-letters show`: one letter, with what it says.

import AppStore
import Contract
import Crypto
import Kafka
import Log
import Platform
import Telemetry

struct LetterCard {
    /// The same body may have come many times.
    private static let limit = 10

    let query: LetterQuery
    let output: Output

    func run(_ scans: [LetterScan]) throws(DeadLettersFault) -> ExitCode {
        var found = 0
        var progress = ProgressBar.standardError()
        for scan in scans {
            try scan.run(from: start, progress: { progress.update($0) { scan.topic } }) {
                record throws(DeadLettersFault) in
                let letter = Letter(record, in: scan.environment)
                guard query.matches(letter) else { return true }
                if found == Self.limit {
                    output.message("perennial dead-letters: there are more; PARTITION:OFFSET names one")
                    return false
                }
                found += 1
                progress.end()
                let body = record.copyOfValue() ?? []
                if query.isRaw { output.data(Self.text(body)) } else { show(letter, body, in: scan.topic) }
                return true
            }
        }
        progress.end()
        if found == 0 { output.message("perennial dead-letters: there is no such letter") }
        return found == 0 ? .no : .done
    }

    private var start: LetterScan.Start {
        if case .position(let partition, let offset)? = query.letter {
            return .position(partition: partition, offset: offset)
        }
        return query.since.map { .time($0) } ?? .beginning
    }

    /// Bytes that are no text are shown in Base64.
    private static func text(_ bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self)
            ?? String(decoding: Base64.encodeStandard(bytes.span), as: UTF8.self)
    }

    private func show(_ letter: Letter, _ body: [UInt8], in topic: String) {
        var lines = [
            "topic     \(topic)", "position  \(letter.position)",
            "came      \(rfc3339(milliseconds: letter.firstTime))", "reason    \(printable(letter.reason))",
            "key       \(printable(letter.key))", "bytes     \(letter.bytes)",
        ]
        for header in letter.headers {
            let value = header.value.map { printable(String(decoding: $0, as: UTF8.self)) } ?? "null"
            lines.append("header    \(printable(header.name)) = \(value)")
        }
        if let payload = Self.payload(of: body) {
            lines.append("payload   \(printable(Self.text(payload)))")
        } else {
            lines.append("payload   is no signed text; --raw shows the bytes")
        }
        for line in lines { output.data(line) }
    }

    /// What the signed text of a notification says, whoever signed it.
    static func payload(of body: [UInt8]) -> [UInt8]? {
        let jws: [UInt8]
        do throws(Rejection) {
            jws = try NotificationBody.signedPayload(of: body)
        } catch {
            return nil
        }
        let parts = jws.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        return Base64.decodeURL(Array(parts[1]).span)
    }
}
