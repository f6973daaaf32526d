// One example of each command, which help shows.

import CommandLine
import Configuration

extension Program {
    /// Tests check that each example has only known options.
    static let examples: [CommandName: String] = [
        .ingest:
            "perennial ingest --apps apps.json --ingest.tls.certificate tls.pem --ingest.tls.key tls.key --kafka.bootstrap.servers kafka-1:9092",
        .api: "perennial api --api.token file:/run/secrets/api-token --api.listen 0.0.0.0:8080",
        .clock: "perennial clock --kafka.bootstrap.servers kafka-1:9092,kafka-2:9092",
        .entitlements: "perennial entitlements --apps apps.json --state.directory /var/lib/perennial",
        .churn: "perennial churn --churn.zone Europe/Berlin --state.directory /var/lib/perennial",
        .consumption: "perennial consumption --consumption.policy refunds.json --consumption.send false",
        .replay: "perennial replay entitlements --name october --apps apps.json --rate 2000",
        .promote: "perennial promote entitlements --name october --apps apps.json",
        .diff: "perennial diff churn --name october --format json",
        .offsets: "perennial offsets show entitlements",
        .topics: "perennial topics plan --environment production",
        .deadLetters: "perennial dead-letters list rejected --since 2h --reason wrong_app",
        .inspect: "perennial inspect subscription 2000000123456789 --apps apps.json",
        .usage: "perennial usage put --originalTransactionId 2000000123456789 --consented true",
        .verify: "perennial verify --apps apps.json notification.json",
        .check: "perennial check entitlements --config /etc/perennial/perennial.conf",
        .size: "perennial size --subscribers 1000000 --config /etc/perennial/perennial.conf",
        .simulate: "perennial simulate --url https://127.0.0.1:8443/notifications --ca ca.pem --subscribers 50",
        .demo: "perennial demo --for 30s",
        .help: "perennial help settings",
        .version: "perennial version --format json",
    ]
}
