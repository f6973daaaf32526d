// One call of `perennial simulate`, from its options to its exit code.

import CommandLine
import Crypto
import HTTPClient
import JSON
import Platform
import Simulation

struct SimulateRun {
    /// Why the run ends early.
    struct Stop: Error {
        let code: ExitCode
        let words: String

        static func wrongUsage(_ words: String) -> Stop { Stop(code: .wrongUsage, words: words) }
        static func gaveUp(_ fault: OutputFault) -> Stop { Stop(code: .gaveUp, words: fault.description) }
    }

    let options: SimulateOptions
    let output: Output

    func run() -> ExitCode {
        do throws(Stop) {
            let store: MakeBelieveStore
            do throws(MakeBelieveStore.Fault) {
                store = try MakeBelieveStore(options)
            } catch {
                throw .wrongUsage(error.words)
            }
            // Created first, so that a fault of the endpoint is found before hours of writing.
            let client = try options.url.map { _ throws(Stop) in try makeClient() }
            let api = try options.api.address.map { address throws(Stop) in
                try SimulateAPI.start(options, address: address, store: store, output: output)
            }
            defer { api?.stop() }
            do throws(OutputFault) {
                try writeFiles(of: store)
                if let folder = options.payloadFolder { try writePayloads(of: store, to: folder) }
                var code = ExitCode.done
                if let client, let url = options.url {
                    defer { client.close() }
                    code = try post(store, to: url, with: client)
                }
                if options.decidesByAnswers { try writeTruth(of: store) }
                try api?.serve()
                return code
            } catch {
                throw .gaveUp(error)
            }
        } catch {
            output.message("perennial simulate: \(error.words)")
            return error.code
        }
    }

    private func makeClient() throws(Stop) -> HTTPClient {
        var configuration = HTTPClient.Configuration()
        configuration.maxInFlight = options.connections
        configuration.maxResponseBytes = Answer.maxBytes
        configuration.userAgent = "perennial-simulate/\(PerennialVersion.text)"
        if let path = options.authorities {
            do throws(FileFault) {
                configuration.extraAuthorities = try readFile(path)
            } catch {
                throw .wrongUsage("--ca: \(error)")
            }
            // The client would report this too, but after every post.
            do throws(CertificateFault) {
                _ = try Certificate.read(configuration.extraAuthorities ?? [])
            } catch {
                throw .wrongUsage("--ca: \(path) holds no certificates: \(error)")
            }
        }
        do throws(HTTPClientFault) {
            return try HTTPClient(configuration)
        } catch {
            throw Stop(code: .gaveUp, words: error.detail)
        }
    }

    // MARK: Files

    private func writeFiles(of store: MakeBelieveStore) throws(OutputFault) {
        if let path = options.root { try OutputFile.write(store.rootPEM, to: path) }
        if let path = options.apps { try OutputFile.write(store.appsFile + [UInt8(ascii: "\n")], to: path) }
        // If answers decide, the truth is not known before the end.
        guard !options.decidesByAnswers else { return }
        try writeTruth(of: store)
        if let path = options.usageFile { try writeUsage(of: store, to: path) }
    }

    private func writeUsage(of store: MakeBelieveStore, to path: String) throws(OutputFault) {
        let file = try OutputFile(path: path)
        var parcels = store.parcels(withUsage: true)
        while let parcel = parcels.next() {
            if parcel.kind == .usage { try file.append(line: parcel.usageLine) }
        }
        try file.flush()
    }

    private func writeTruth(of store: MakeBelieveStore) throws(OutputFault) {
        guard let path = options.truth else { return }
        var progress = ProgressBar.standardError()
        defer { progress.end() }
        let file = try OutputFile(path: path)
        try store.writeTruth(to: file) { fraction in progress.update(fraction) { "of the truth" } }
    }

    private func writePayloads(of store: MakeBelieveStore, to folder: String) throws(OutputFault) {
        try makeDirectory(folder)
        let index = try OutputFile(path: "\(folder)/index.jsonl")
        var progress = ProgressBar.standardError()
        defer { progress.end() }
        var parcels = store.parcels
        var count = 0
        while let parcel = parcels.next() {
            let number = String(count)
            let name = String(repeating: "0", count: max(0, 8 - number.count)) + number + ".jws"
            try OutputFile.write(parcel.payload(), to: "\(folder)/\(name)")
            try index.append(line: parcel.indexLine(file: name))
            count += 1
            progress.update(store.fraction(at: parcel.at)) { "\(count) payloads" }
        }
        try index.flush()
        progress.end()
        output.message("\(count) payloads in \(folder)")
    }
}

extension Parcel {
    private var expected: String {
        switch expectation {
        case .accepted: "accepted"
        case .refused(let code): code
        }
    }

    /// A line of `index.jsonl`.
    func indexLine(file: String) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("file", file)
            json.member("at", at)
            json.member("notificationUUID", notificationUUID)
            json.member("expected", expected)
        }
        return json.bytes
    }

    /// A line of the file of `--usage-out`.
    var usageLine: [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("at", at)
            json.member("record", json: payload())
        }
        return json.bytes
    }

    /// A line of the file of `--acknowledged`.
    func journalLine(sha256: [UInt8], sends: Int, answer: Answer, verdict: Verdict) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("notificationUUID", notificationUUID)
            json.member("sha256", hexadecimal(sha256))
            json.member("sends", sends)
            switch answer {
            case .status(let status, let error):
                json.member("status", status)
                json.member("error", error)
            case .none(let kind):
                json.member("status", nil)
                json.member("error", kind.rawValue)
            }
            json.member("verdict", verdict.rawValue)
            json.member("expected", expected)
        }
        return json.bytes
    }
}
