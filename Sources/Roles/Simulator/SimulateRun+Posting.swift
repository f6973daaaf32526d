// `perennial simulate --url`: the posts of one run.

import CommandLine
import HTTPClient
import Platform

extension SimulateRun {
    func post(_ store: MakeBelieveStore, to url: String, with client: HTTPClient) throws(OutputFault) -> ExitCode {
        let journal = try file(options.acknowledged)
        var courier = Courier(courierOptions(url), client: client, guide: options.isLive ? WallGuide() : nil) {
            parcel, sha256, sends, answer, verdict throws(OutputFault) in
            guard let journal, parcel.kind == .notification else { return }
            try journal.append(line: parcel.journalLine(sha256: sha256, sends: sends, answer: answer, verdict: verdict))
            // Flushed at once, so that the file has every answer even if this process is killed.
            try journal.flush()
        }
        // If answers do not decide, the file was written before.
        let records = try file(options.decidesByAnswers ? options.usageFile : nil)
        var parcels = store.parcels(withUsage: options.usage != nil || records != nil)
        var progress = ProgressBar.standardError()
        defer { progress.end() }
        try courier.deliver(
            { () throws(OutputFault) in
                while let parcel = parcels.next() {
                    guard parcel.kind == .usage else { return parcel }
                    try records?.append(line: parcel.usageLine)
                    try records?.flush()
                    if options.usage != nil { return parcel }
                }
                return nil
            },
            watch: { at, tally in progress.update(store.fraction(at: at)) { tally.progress } })
        progress.end()
        if let nobody = courier.nobody {
            output.message(
                "perennial simulate: nobody listens at \(url): \(nobody.detail). Is ingest running there?")
            return .gaveUp
        }
        for line in courier.tally.summary { output.message(line) }
        return courier.tally.isAllRight ? .done : .no
    }

    private func file(_ path: String?) throws(OutputFault) -> OutputFile? {
        guard let path else { return nil }
        return try OutputFile(path: path)
    }

    /// For an ingest that is started at the same time.
    private static let patienceForNobody: Duration = .seconds(5)

    private func courierOptions(_ url: String) -> Courier.Options {
        var courier = Courier.Options(
            url: url, connections: options.connections, speed: options.speed, rate: options.rate,
            retryScale: options.retryScale, patienceForNobody: Self.patienceForNobody)
        if let url = options.usage, let token = options.usageToken {
            courier.usage = Courier.Options.Usage(url: url, token: token)
        }
        return courier
    }
}

/// Posts in real time.
private struct WallGuide: CourierGuide {
    var isOver: Bool { false }
    func wait(until time: Int64) -> Duration { .milliseconds(max(0, time - WallClock.milliseconds())) }
    func sending(_ parcel: Parcel, sends: Int) {}
    func answered(_ parcel: Parcel, sends: Int, _ answer: Answer, _ verdict: Verdict) {}
}
