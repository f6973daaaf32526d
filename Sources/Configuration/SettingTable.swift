// Every setting, once: name, default, values, effect, and who reads it. Help, README and checks come from here.

import Contract
public import Settings
import Telemetry

public enum SettingTable {
    // MARK: Topics

    static let topicPrefix = setting(
        "topic.prefix", default: "appstore", .topicPrefix, for: .onTopics,
        "First part of the names of topics and groups.")
    static let environment = setting(
        "environment", default: "production", note: "`api`, `topics`, `dead-letters`, `offsets`: both",
        .choice as SettingKind<EnvironmentChoice>,
        for: .onTopics,
        "Picks the topics that are read; a worker reads those of one. Ingest serves both and routes by the verified environment; records of usage that "
            + "name none are written to this one.")
    static let partitions = setting(
        // Kafka itself bends at some thousand; a mistyped count is found before it is made.
        "partitions", default: "12", .integer(1...10_000), for: .onTopics,
        "Partitions of every topic. A topic with another count is refused: keys would be in other places.")
    static let replicationFactor = setting(
        // A 16-bit number in the protocol.
        "topics.replication.factor", default: "3", .integer(1...32_767), for: [.topics],
        "Copies of each partition, for `topics apply`.")
    static let minimumInSyncReplicas = setting(
        "topics.min.insync.replicas", default: "2", .integer(1...32_767), for: [.topics],
        "Copies that have to have a record before it counts as written, for `topics apply`.")

    // MARK: Apps and verification

    static let apps = setting(
        "apps", .path, for: .verifiers + .runWorkers + [.promote, .inspect],
        "JSON file of the apps, their Apple ids, entitlements and periods.")
    static let verifyRoots = setting(
        "verify.roots", .list(of: .path), for: .verifiers,
        "Files (PEM or DER) of self-signed certificate authorities to trust besides the built-in Apple Root CA - G3.")
    static let verifyOCSP = setting(
        "verify.ocsp", default: "off", .choice as SettingKind<OCSPMode>, for: .verifiers,
        "Whether revocation is asked of Apple. `soft`: no answer passes; `hard`: no answer does not.")
    static let archiveSignedPayloads = setting(
        "archive.signed.payloads", default: "true", .flag, for: [.ingest, .backfill, .deadLetters],
        "Also publish each signed payload to `signed`.")

    // MARK: Ingest

    static let ingestListen = setting(
        "ingest.listen", default: "0.0.0.0:8443", .listenAddress, for: [.ingest], "Where Apple's notifications arrive.")
    static let ingestCertificate = setting(
        "ingest.tls.certificate", .path, for: [.ingest],
        "PEM file: certificate and its chain. Read again on SIGHUP and when it changes.")
    static let ingestKey = setting("ingest.tls.key", .path, for: [.ingest], "PEM file: private key of the certificate.")
    static let ingestPlaintext = setting(
        "ingest.plaintext", default: "false", .flag, for: [.ingest], "Serve HTTP, behind a proxy that ends TLS.")
    static let ingestAllow = setting(
        "ingest.allow", default: "any", .allowedAddresses, for: [.ingest],
        "Client addresses that are served, such as Apple's `17.0.0.0/8`.")
    static let ingestTrustedProxies = setting(
        "ingest.trusted.proxies", .list(of: .addressRange), for: [.ingest],
        "Proxies whose X-Forwarded-For is believed.")
    static let ingestMaxBodyBytes = setting(
        // A real notification has 20 KB. Twice the default still fits a batch of Kafka (TopicPlan.limitBatchBytes).
        "ingest.max.body.bytes", default: "262144", .integer(32_768...Configuration.Ingest.greatestBodyBytes),
        for: [.ingest], "Larger bodies are answered 413.")
    static let ingestTimeout = setting(
        "ingest.timeout.ms", default: "2000", .integer(100...60_000), for: [.ingest],
        "From the whole body to the answer; then 503, and Apple comes again.")
    static let ingestMaxInFlight = setting(
        "ingest.max.in.flight", default: "2048", .integer(1...65_536), for: [.ingest],
        "Requests held at a time; beyond it 503.")
    static let ingestRepeated = setting(
        "ingest.repeated.ms", default: "10800000", .integer(0...86_400_000), for: [.ingest],
        "For so long, and at most twice as long, what Kafka has acknowledged is answered 200 and not written again; 0: it is."
    )
    static let ingestMaxBufferedBytes = setting(
        "ingest.max.buffered.bytes", default: "67108864", .integer(1_048_576...1 << 40), for: [.ingest],
        "Of the bodies of all requests together; beyond it 503.")
    static let rejectedMaxBytesPerHour = setting(
        "rejected.max.bytes.per.hour", default: "67108864", .integer(0...1 << 40), for: [.ingest],
        "Kept of refused bodies, per process; what is beyond it is only counted.")
    static let usageToken = setting(
        "usage.token", .bearerToken, secret: true, for: [.ingest], "Bearer token; turns `POST /usage` on.")

    // MARK: Every service

    static let logFormat = setting(
        "log.format", default: "json", .choice as SettingKind<LogFormat>, for: .services + [.replay],
        "`text` for people.")
    static let logLevel = setting(
        "log.level", default: "info", note: "`replay`: warning", .choice as SettingKind<LogLevel>,
        for: .services + [.replay],
        "Least important level logged.")
    static let adminListen = setting(
        "admin.listen", default: "127.0.0.1:9464", note: "`replay`: only a flag counts", .listenAddress,
        for: .services + [.replay],
        "Where `/livez`, `/readyz` and `/metrics` are served.")

    // MARK: Workers

    static let stateDirectory = setting(
        "state.directory", default: "./state", .path, for: .runWorkers + [.api, .promote],
        "Local state; a cache that is rebuilt from Kafka when it is lost.")
    static let stateCacheBytes = setting(
        // Below one MiB the store's own blocks do not fit.
        "state.cache.bytes", default: "268435456", .integer(1 << 20...1 << 40), for: .runWorkers + [.api, .promote],
        "Memory for state, backlogs and restores, per process; all that a worker has resident is at most 100 MiB more.")
    static let workerThreads = setting(
        "worker.threads", default: "1", .integer(1...256), for: .runWorkers,
        "Threads of a worker, each with its own partitions.")
    static let workerSlot = setting(
        "worker.slot", default: "auto", .workerSlot, for: .runWorkers + [.promote],
        "Stable number of this replica. `auto`: the number behind the last `-` of a host name that ends so (`worker-3`); with any "
            + "other name a dynamic member of the group, without a number.")
    static let workerLeave = setting(
        "worker.leave", default: "false", .flag, for: .runWorkers,
        "Leave the group on SIGTERM (a planned scale-in) instead of keeping the place for a restart.")
    static let commitInterval = setting(
        // Half of the transaction timeout of a live worker.
        "commit.interval.ms", default: "20", .integer(1...5000), for: .runWorkers,
        "Longest time to a commit; an input read to its end commits at once. A replay takes a second at least.")
    static let tickInterval = setting(
        "tick.interval.ms", default: "60000", .integer(100...3_600_000), for: [.ingest, .clock],
        "Silence of a partition after which a tick moves its clock.")
    static let entitlementsLeeway = setting(
        // Apple's own longest grace period is 28 days.
        "entitlements.leeway.ms", default: "3600000", note: "60000 in sandbox", .integer(0...28 * 86_400_000),
        for: [.entitlements, .replay, .promote, .inspect],
        "Time after the end of a period in which access lasts although the renewal's word has not come.")
    static let churnZone = setting(
        "churn.zone", default: "UTC", .zone, for: [.churn, .replay, .diff, .promote, .api, .inspect],
        "Time zone of the day buckets.")

    // MARK: Read API, consumption, Apple

    static let apiListen = setting(
        "api.listen", default: "127.0.0.1:8080", .listenAddress, for: [.api], "Where the read API is served.")
    static let apiToken = setting(
        "api.token", .bearerTokens, secret: true, for: [.api],
        "Bearer tokens, each of 16 characters at least; without one only a loopback address is listened on. Read again on SIGHUP and when its file changes."
    )
    static let apiMaxBehind = setting(
        // Ten years at most, for a log that is filled from the past.
        "api.max.behind.ms", default: "600000", .integer(1000...315_360_000_000), for: [.api],
        "Age of a notification that its worker has not dealt with above which answers are 503.")
    static let consumptionPolicy = setting(
        "consumption.policy", .path, for: [.consumption, .replay], "JSON file of the refund policy.")
    static let consumptionWait = setting(
        // Apple waits 12 hours; an hour is left for sending and repeating.
        "consumption.wait.ms", default: "3600000", .integer(0...11 * 3_600_000), for: [.consumption, .replay],
        "How long a request waits for usage before it is decided.")
    static let consumptionSend = setting(
        "consumption.send", default: "true", .flag, for: [.consumption], "`false` decides and records, sends nothing.")
    static let consumptionRate = setting(
        // Apple's limits are 50 a second for each app, and a tenth of that in sandbox.
        "consumption.rate", default: "50", note: "5 in sandbox", .integer(1...10_000), for: [.consumption],
        "Answers a second for each app, of all replicas together: each takes its share of the partitions.")
    static let appleIssuerId = setting(
        "apple.issuer.id", .identifier, for: .callApple, "Issuer id of the App Store Server API key.")
    static let appleKeyId = setting("apple.key.id", .identifier, for: .callApple, "Id of the App Store Server API key.")
    static let appleKey = setting(
        "apple.key", .pathOrText, secret: true, for: .callApple,
        "Path of the App Store Server API key (`.p8`), or by `file:` its text.")
    static let appleProduction = setting(
        "apple.api.production", default: "https://api.storekit.apple.com", .baseURL, for: .callApple,
        "App Store Server API of production.")
    static let appleSandbox = setting(
        "apple.api.sandbox", default: "https://api.storekit-sandbox.apple.com", .baseURL, for: .callApple,
        "App Store Server API of sandbox.")

    static let appleCA = setting(
        "apple.ca", .path, for: .callApple, "PEM file: a private authority that `apple.api.*` are trusted by as well.")
    /// In the order of the table in help and README.
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

    /// Commands that connect to Kafka: they read `kafka.*` as they read the prefix.
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
    /// Ask Apple's servers.
    fileprivate static let callApple: [CommandName] = [.consumption, .backfill]
}
