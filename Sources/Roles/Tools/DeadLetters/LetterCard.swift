// `dead-letters show`: one letter, with what it says.

import AppStore
import Cluster
import CommandLine
import Contract
import Crypto
import JSON
import Kafka
import Log
import Platform
import Telemetry

struct LetterCard {
    /// The same body may have arrived many times.
    private static let limit = 10

    let query: LetterQuery
    let output: Output

    func run(_ scans: [LetterScan]) throws(ToolFault) -> ExitCode {
        var found = 0
        var progress = ProgressBar.standardError()
        for scan in scans {
            try scan.run(from: query.start, progress: { progress.update($0) { scan.topic } }) {
                record throws(ToolFault) in
                let letter = Letter(record, in: scan.environment)
                guard query.matches(letter) else { return true }
                if found == Self.limit {
                    output.message("perennial dead-letters: more letters match; name one as PARTITION:OFFSET")
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

    /// Bytes that are not text are shown in Base64.
    private static func text(_ bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self)
            ?? String(decoding: Base64.encodeStandard(bytes.span), as: UTF8.self)
    }

    private func show(_ letter: Letter, _ body: [UInt8], in topic: String) {
        let isWorkers = query.topic != .rejected
        var lines = [
            "topic     \(topic)", "position  \(letter.position)",
            "came      \(rfc3339(milliseconds: letter.firstTime))", "reason    \(printable(letter.reason))",
        ]
        if let detail = letter.marks.detail { lines.append("detail    \(printable(detail))") }
        if isWorkers { lines.append("source    \(letter.marks.source.map(printable) ?? "unknown")") }
        if let timer = letter.marks.timer { lines.append("timer     \(printable(timer))") }
        lines += ["key       \(letter.key.isEmpty ? "none" : printable(letter.key))", "bytes     \(letter.bytes)"]
        for header in letter.headers {
            let value = header.value.map { printable(String(decoding: $0, as: UTF8.self)) } ?? "null"
            lines.append("header    \(printable(header.name)) = \(value)")
        }
        lines.append("payload   \(isWorkers ? Self.words(of: body, letter.marks) : Self.words(signed: body))")
        for line in lines { output.data(line) }
    }

    private static func words(signed body: [UInt8]) -> String {
        payload(of: body).map { printable(text($0)) } ?? "not a signed text; --raw shows the bytes"
    }

    static func words(of value: [UInt8], _ marks: LetterMarks) -> String {
        if marks.timer != nil { return "none: a timer of the key could not fire" }
        if marks.isOfSettling { return "none: the key could not be settled" }
        if marks.gap != nil { return "none: records were lost, and the worker continued after them" }
        var document = JSONDocument()
        do throws(JSONFault) {
            try document.read(value.span)
        } catch {
            return "not JSON; --raw shows the bytes"
        }
        return printable(text(value))
    }

    /// The payload of a signed notification. The signature is not verified.
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
