// `perennial demo`: everything in one process, to watch.

package import CommandLine
import Configuration
import Kafka
import Platform
import Settings

extension Command {
    package static let demo = Command(
        .demo,
        "Runs a simulated App Store, ingest, the workers and the API in one process; nothing to configure.",
        options: [
            CommandOption(
                "for", value: "TIME", effect: "Ends after this time: 30s, 10m or 2h (otherwise Ctrl-C ends it)."),
            CommandOption(
                "kafka", value: "HOST:PORT", effect: "Keeps the log in this Kafka instead of in memory."),
        ],
        details: """
            In a simulated App Store customers arrive, pay, fail to pay, cancel, return and get refunds, up to three days per second. It
            posts the notifications that Apple would send, with forgeries and repetitions among them, over TLS to an ingest. The
            entitlements worker reads what ingest publishes, and the read API answers at the address that is printed, with ids of this
            run. The churn worker counts who pays, who is on trial, in grace and in billing retry, which failed payments were recovered,
            and the monthly revenue (MRR) with its changes of today, by the days of the store in UTC.
            Some customers ask for refunds: the consumption worker answers the store's requests by three rules, over an API of the
            store, which decides by the answers. "Declined after an answer" adds up the prices of purchases whose refund the store
            declined when it had an answer; it does not prove that the answer was the reason.

            Time: the clock of the store starts 390 days ago, and records carry only that time. In memory it runs on into the future
            until ten years have passed, and then stops. With --kafka it reaches the present and goes on with it, because brokers
            refuse records from the future. While a refund request is open, an hour may take a second.

            On a terminal the view is redrawn in its place, in colours unless NO_COLOR is set; otherwise a few lines are printed now and
            then. Ports are free ones of 127.0.0.1. Nothing is written to disk and nothing is left behind. With --kafka, topics are
            created under a prefix of this run, with one replica each, and removed at the end; if the process is killed, they stay.

            It ends at Ctrl-C, after the time of --for, when its terminal is closed (not under nohup), and when nobody reads its output,
            as in perennial demo | head.

            Exit codes: 0 for each of these ends; 2 wrong usage; 3 something did not work.
            """,
        action: .plainService { invocation in
            var faults: [String] = []
            var duration: Duration?
            if let text = invocation.option("for") {
                duration = shortDuration(text)
                if duration == nil {
                    faults.append("--for must be a time from 1s to 24h, such as 30s, 10m or 2h, not \(quoted(text))")
                }
            }
            var place = DemoTopics.Place.memory
            if let servers = invocation.option("kafka") {
                let properties = ClientProperties(bootstrapServers: servers)
                place = .kafka(properties)
                if servers.isEmpty { faults.append("--kafka needs the address of a broker, such as localhost:9092") }
                faults += properties.faults().map { "--kafka: \($0)" }
            }
            guard faults.isEmpty else {
                for fault in faults { invocation.output.message("perennial demo: \(fault)") }
                invocation.output.message("perennial help demo shows its options")
                return .wrongUsage
            }
            return DemoRun(place: place, duration: duration, output: invocation.output).run()
        })
}
