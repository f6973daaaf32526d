// Defines every setting once: name, default, values, effect, and which commands read it. Help, docs/reference/settings.md and
// checks use this table.

import Contract
public import Settings
import Telemetry

public enum SettingTable {
    // MARK: Topics

    static let topicPrefix = setting(
        "topic.prefix", default: "appstore", .topicPrefix, for: .onTopics,
        "First part of the name of every topic and consumer group.")
    static let environment = setting(
        "environment", default: "production", note: "`api`, `topics`, `dead-letters`, `offsets`: both",
        .choice as SettingKind<EnvironmentChoice>,
        for: .onTopics,
        "Which topics are read; a worker reads those of one environment. Ingest serves both and routes each "
            + "notification by its verified environment; usage records that name no environment are written to this "
            + "one.")
    static let partitions = setting(
        // Kafka itself has trouble above some thousand partitions. The limit finds a mistyped number before topics are created.
        "partitions", default: "12", .integer(1...10_000), for: .onTopics + [.size],
        "Number of partitions of every topic. A topic with another number is refused, because keys would be in other "
            + "partitions. It cannot be changed once the topics exist.")
    static let replicationFactor = setting(
        // A 16-bit number in the protocol.
        "topics.replication.factor", default: "3", .integer(1...32_767), for: [.topics, .size],
        "Replication factor of the topics that `topics apply` creates.")
    static let minimumInSyncReplicas = setting(
        "topics.min.insync.replicas", default: "2", .integer(1...32_767), for: [.topics, .size],
        "`min.insync.replicas` of every topic, set by `topics apply`: this many replicas must have a record before it "
            + "counts as written.")

    // MARK: Apps and verification

    static let apps = setting(
        "apps", .path, for: .verifiers + .runWorkers + [.promote, .api, .inspect],
        "JSON file with the apps, their Apple ids, their entitlements and the periods of products that do not renew.")
    static let verifyRoots = setting(
        "verify.roots", .list(of: .path), for: .verifiers,
        "Files (PEM or DER) with self-signed certificate authorities to trust in addition to the built-in Apple Root "
            + "CA - G3.")
    static let verifyOCSP = setting(
        "verify.ocsp", default: "off", .choice as SettingKind<OCSPMode>, for: .verifiers,
        "Whether Apple's OCSP responder is asked if a certificate is revoked. `soft`: accept a payload if the "
            + "responder does not answer. `hard`: give no verdict until it does.")
    static let archiveSignedPayloads = setting(
        "archive.signed.payloads", default: "true", .flag, for: [.ingest, .backfill, .deadLetters, .size],
        "Also publish each signed payload to the topic `signed`.")

    // MARK: Ingest

    static let ingestListen = setting(
        "ingest.listen", default: "0.0.0.0:8443", .listenAddress, for: [.ingest],
        "Address on which ingest receives Apple's notifications.")
    static let ingestCertificate = setting(
        "ingest.tls.certificate", .path, for: [.ingest],
        "PEM file with the TLS certificate and its chain. Ingest reads it again on SIGHUP and when it changes.")
    static let ingestKey = setting(
        "ingest.tls.key", .path, for: [.ingest], "PEM file with the private key of the TLS certificate.")
    static let ingestPlaintext = setting(
        "ingest.plaintext", default: "false", .flag, for: [.ingest],
        "Serve plain HTTP, behind a proxy that terminates TLS.")
    static let ingestAllow = setting(
        "ingest.allow", default: "any", .allowedAddresses, for: [.ingest],
        "Client addresses that ingest serves, such as Apple's `17.0.0.0/8`.")
    static let ingestTrustedProxies = setting(
        "ingest.trusted.proxies", .list(of: .addressRange), for: [.ingest],
        "Proxies whose header `X-Forwarded-For` ingest trusts.")
    static let ingestMaxBodyBytes = setting(
        // A real notification has 20 KB. Twice the default still fits a batch of Kafka (TopicPlan.limitBatchBytes).
        "ingest.max.body.bytes", default: "262144", .integer(32_768...Configuration.Ingest.greatestBodyBytes),
        for: [.ingest], "Largest body of a request. Ingest answers larger ones with 413.")
    static let ingestTimeout = setting(
        "ingest.timeout.ms", default: "2000", .integer(100...60_000), for: [.ingest],
        "Time from receiving the complete body to answering. After that ingest answers 503, and Apple retries.")
    static let ingestMaxInFlight = setting(
        "ingest.max.in.flight", default: "2048", .integer(1...65_536), for: [.ingest],
        "Requests in flight at the same time. Ingest answers more with 503.")
    static let ingestRepeated = setting(
        "ingest.repeated.ms", default: "10800000", .integer(0...86_400_000), for: [.ingest],
        "Each process remembers in its memory what Kafka has acknowledged: up to 32,768 notifications for each period of "
            + "this length, for one to two periods. A repetition of one of them is answered 200 and not written again. "
            + "After a restart, on another replica, or if more arrive, a repetition may be written again; readers know it "
            + "by its `id`. 0: every repetition is written.")
    static let ingestMaxBufferedBytes = setting(
        "ingest.max.buffered.bytes", default: "67108864", .integer(1_048_576...1 << 40), for: [.ingest, .size],
        "Memory of each process for the bodies of all requests in flight together. Large bodies may use half of it. A "
            + "request that does not fit is answered 503, and Apple retries.")
    static let rejectedMaxBytesPerHour = setting(
        "rejected.max.bytes.per.hour", default: "67108864", .integer(0...1 << 40), for: [.ingest],
        "Bytes of refused bodies that each process stores per hour in `rejected`. Bodies beyond this are counted but "
            + "not stored.")
    static let usageToken = setting(
        "usage.token", .bearerToken, secret: true, for: [.ingest],
        "Bearer token of `POST /usage`. If unset, ingest does not serve that path.")

    // MARK: Every service

    static let logFormat = setting(
        "log.format", default: "json", .choice as SettingKind<LogFormat>, for: .services + [.replay],
        "Format of the log lines; `text` is for people.")
    static let logLevel = setting(
        "log.level", default: "info", note: "`replay`: warning", .choice as SettingKind<LogLevel>,
        for: .services + [.replay],
        "Lowest level that is logged. Today `trace` logs what `debug` does.")
    static let adminListen = setting(
        "admin.listen", default: "127.0.0.1:9464", note: "`replay`: none, unless a flag gives it", .listenAddress,
        for: .services + [.replay],
        "Address that serves `/livez`, `/readyz` and `/metrics`.")

    // MARK: Workers

    static let stateDirectory = setting(
        "state.directory", default: "./state", .path, for: .runWorkers + [.api, .promote],
        "Directory of the local state. It is a cache: if it is lost, it is rebuilt from Kafka.")
    static let stateCacheBytes = setting(
        // The blocks of the store need at least one MiB.
        "state.cache.bytes", default: "268435456", .integer(1 << 20...1 << 40),
        for: .runWorkers + [.api, .promote, .size],
        "Memory of each process for state, backlogs and restores. Under a backlog a worker takes up to a quarter more, "
            + "and 192 MiB, and 64 MiB for each thread.")
    static let workerThreads = setting(
        "worker.threads", default: "1", .integer(1...256), for: .runWorkers + [.size],
        "Number of threads of a worker. Each thread works on partitions of its own.")
    static let workerSlot = setting(
        "worker.slot", default: "auto", .workerSlot, for: .runWorkers + [.promote],
        "Stable number of this replica. `auto`: the number after the last `-` of the host name (`worker-3`). A host "
            + "name without such a number makes the replica a dynamic member of the group, without a slot. Two processes "
            + "of one worker and environment must never have the same slot: one of them, often the older one, stops with "
            + "exit code 3.")
    static let workerLeave = setting(
        "worker.leave", default: "false", .flag, for: .runWorkers,
        "Leave the group on SIGTERM, for a planned scale-in. Otherwise the group keeps the partitions of a replica with "
            + "a slot for 30 s, for its restart. A replica without a slot always leaves.")
    static let commitInterval = setting(
        // At most half of the transaction timeout of a live worker.
        "commit.interval.ms", default: "20", .integer(1...5000), for: .runWorkers,
        "Time from a commit to the next one while the worker keeps up with its input. With a smaller value readers see "
            + "results sooner, and each notification costs the worker and the brokers more. What arrives after a quiet "
            + "time is committed at once. A backlog is committed after 100 ms, or after this time if that is longer. A "
            + "replay takes 1000 for any value below that.")
    static let tickInterval = setting(
        "tick.interval.ms", default: "60000", .integer(100...3_600_000), for: [.ingest, .clock, .size],
        "If nothing is written to a partition of `notifications` for this long, a tick is written, so that its clock "
            + "moves on. What happens by time alone, such as the end of access, is published later by up to this time.")
    static let entitlementsLeeway = setting(
        // Apple's own longest grace period is 28 days.
        "entitlements.leeway.ms", default: "3600000", note: "60000 in sandbox", .integer(0...28 * 86_400_000),
        for: [.entitlements, .replay, .promote, .inspect],
        "How long access lasts after the end of a period while the notification about the renewal has not arrived. To "
            + "change it, run a replay and promote it: a restart would apply it only to what changes afterwards.")
    static let churnZone = setting(
        "churn.zone", default: "UTC", .zone, for: [.churn, .replay, .diff, .promote, .api, .inspect],
        "Time zone of the days that churn counts by.")

    // MARK: Read API, consumption, Apple

    static let apiListen = setting(
        "api.listen", default: "127.0.0.1:8080", .listenAddress, for: [.api], "Address that serves the read API.")
    static let apiToken = setting(
        "api.token", .bearerTokens, secret: true, for: [.api],
        "Bearer tokens, each of at least 16 characters. If unset, the API binds only to a loopback address. The API "
            + "reads them again on SIGHUP and when their file changes.")
    static let apiMaxBehind = setting(
        // Up to ten years, for a log with old records.
        "api.max.behind.ms", default: "600000", .integer(1000...315_360_000_000), for: [.api],
        "If a worker has not processed a notification that is older than this, the API answers 503.")
    static let consumptionPolicy = setting(
        "consumption.policy", .path, for: [.consumption, .replay], "JSON file with the refund policy.")
    static let consumptionWait = setting(
        // Apple waits 12 hours; one hour is left to send and retry.
        "consumption.wait.ms", default: "3600000", .integer(0...11 * 3_600_000), for: [.consumption, .replay],
        "How long a refund request waits for usage records before it is decided.")
    static let consumptionSend = setting(
        "consumption.send", default: "true", .flag, for: [.consumption],
        "`false`: decide and record the answers to refund requests, but send nothing to Apple.")
    static let consumptionRate = setting(
        // Apple allows 50 requests per second for each app, and a tenth of that in sandbox.
        "consumption.rate", default: "50", note: "5 in sandbox", .integer(1...10_000), for: [.consumption],
        "Answers to Apple per second and app, of all replicas together. Each replica uses the share that its "
            + "partitions have.")
    static let appleIssuerId = setting(
        "apple.issuer.id", .identifier, for: .callApple, "Issuer id of the key for the App Store Server API.")
    static let appleKeyId = setting(
        "apple.key.id", .identifier, for: .callApple, "Id of the key for the App Store Server API.")
    static let appleKey = setting(
        "apple.key", .pathOrText, secret: true, for: .callApple,
        "Path of the key for the App Store Server API (`.p8`); a value that begins with `file:` gives its text.")
    static let appleProduction = setting(
        "apple.api.production", default: "https://api.storekit.apple.com", .baseURL, for: .callApple,
        "Address of the App Store Server API for production.")
    static let appleSandbox = setting(
        "apple.api.sandbox", default: "https://api.storekit-sandbox.apple.com", .baseURL, for: .callApple,
        "Address of the App Store Server API for sandbox.")

    static let appleCA = setting(
        "apple.ca", .path, for: .callApple,
        "PEM file with a private certificate authority that is trusted for `apple.api.*` as well.")
    /// In the order of help and docs/reference/settings.md.
    public static let definitions: [SettingDefinition] = [
        topicPrefix.definition, environment.definition, partitions.definition, replicationFactor.definition,
        minimumInSyncReplicas.definition, apps.definition, ingestListen.definition, ingestCertificate.definition,
        ingestKey.definition, ingestPlaintext.definition, ingestAllow.definition, ingestTrustedProxies.definition,
        ingestMaxBodyBytes.definition, ingestTimeout.definition, ingestMaxInFlight.definition,
        ingestRepeated.definition, ingestMaxBufferedBytes.definition, rejectedMaxBytesPerHour.definition,
        verifyRoots.definition,
        verifyOCSP.definition,
        archiveSignedPayloads.definition, logFormat.definition, logLevel.definition, adminListen.definition,
        stateDirectory.definition, stateCacheBytes.definition, workerThreads.definition, workerSlot.definition,
        workerLeave.definition,
        commitInterval.definition, tickInterval.definition, entitlementsLeeway.definition, churnZone.definition,
        apiListen.definition, apiToken.definition, apiMaxBehind.definition, usageToken.definition,
        consumptionPolicy.definition,
        consumptionWait.definition, consumptionSend.definition, consumptionRate.definition, appleIssuerId.definition,
        appleKeyId.definition, appleKey.definition, appleProduction.definition, appleSandbox.definition,
        appleCA.definition,
    ]

    public static let kafka = PassThroughFamily(
        name: "kafka", scopes: ["consumer", "producer", "admin"],
        examples: [
            "bootstrap.servers", "security.protocol", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
            "sasl.mechanism", "sasl.username", "sasl.password", "client.id",
        ], runningCode: ["sasl.kerberos.kinit.cmd", "ssl.engine.location", "ssl.providers"])

    /// Commands that connect to Kafka: the same that read the prefix also read `kafka.*`.
    public static let kafkaReaders = topicPrefix.definition.readers

    public static let schema = SettingsSchema(
        definitions: definitions, family: kafka, variablePrefix: "PERENNIAL_", defaultFile: "./perennial.conf",
        help: "perennial help settings")

    /// `check` reads everything.
    private static func setting<Value>(
        _ key: String, default defaultText: String? = nil, note: String? = nil, _ kind: SettingKind<Value>,
        secret: Bool = false, for commands: [CommandName], _ effect: String
    ) -> Setting<Value> {
        Setting(
            key, default: defaultText, note: note, kind, secret: secret,
            readBy: (commands + [.check]).map(\.rawValue), effect: effect)
    }
}

extension [CommandName] {
    /// Commands that call Apple's servers.
    fileprivate static let callApple: [CommandName] = [.consumption, .backfill]
}
