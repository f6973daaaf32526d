// The whole configuration with types, after every check that needs no network.

public import Contract
public import Platform
public import Settings
public import Telemetry

/// All faults at once.
public struct ConfigurationFaults: Error, CustomStringConvertible {
    public let faults: [SettingFault]

    public init(faults: [SettingFault]) { self.faults = faults }

    public var description: String { faults.map(\.description).joined(separator: "\n") }
}

public struct Configuration: Sendable {
    /// The properties of librdkafka, as they were set. `Cluster` makes clients with them.
    public let kafka: [PassThroughEntry]
    public let topicPlan: TopicPlan
    /// The named environment; production if none or both were named.
    public let environment: Contract.Environment
    /// Both environments, unless one was named; production first.
    public let namedEnvironments: [Contract.Environment]
    public let apps: [App]
    public let verification: Verification
    public let ingest: Ingest
    public let service: Service
    public let worker: Worker
    public let tickInterval: Duration
    public let entitlementsLeeway: Duration
    public let churnZone: String
    public let api: ReadAPI
    public let consumption: Consumption
    public let apple: Apple
    /// Every setting in a form that people may see.
    public let rows: [(key: String, value: String, origin: SettingOrigin)]

    public struct Verification: Sendable {
        public let rootPaths: [String]
        public let ocsp: OCSPMode
        public let archivesSignedPayloads: Bool
    }

    public struct Ingest: Sendable {
        /// The maximum of `maxBodyBytes`. A reader of what ingest accepted at any time, with any setting, must accept
        /// bodies of this size.
        public static let greatestBodyBytes = 524_288

        public let listen: ListenAddress
        public let certificatePath: String?
        public let keyPath: String?
        public let isPlaintext: Bool
        public let allowed: AllowedAddresses
        public let trustedProxies: [AddressRange]
        public let maxBodyBytes: Int
        public let timeout: Duration
        public let maxInFlight: Int
        /// 0: every body is written, even if Kafka already has it.
        public let repeatedMilliseconds: Int
        /// At least twice `greatestBodyBytes`: half of it is for large bodies.
        public let maxBufferedBytes: Int
        public let rejectedMaxBytesPerHour: Int
        public let usageToken: String?
    }

    public struct Service: Sendable {
        public let logFormat: LogFormat
        public let logLevel: LogLevel
        public let adminListen: ListenAddress
    }

    public struct Worker: Sendable {
        public let stateDirectory: String
        public let stateCacheBytes: Int
        public let threads: Int
        public let slot: WorkerSlot
        public let leaves: Bool
        public let commitInterval: Duration
    }

    public struct ReadAPI: Sendable {
        public let listen: ListenAddress
        /// Empty: every client that reaches the address may send requests.
        public let tokens: [String]
        public let maxBehind: Duration
    }

    public struct Consumption: Sendable {
        public let policyPath: String?
        public let wait: Duration
        public let sends: Bool
        /// Answers per second for each app, for all replicas together.
        public let rate: Int
    }

    public struct Apple: Sendable {
        public let issuerId: String?
        public let keyId: String?
        /// A path, or the key itself if it was given by `file:`.
        public let key: String?
        public let production: BaseURL
        public let sandbox: BaseURL
        /// PEM of a private authority.
        public let authorityPath: String?
    }

    /// Every file that was read, as far as the names are known here: the settings file, and the files of values, of
    /// `apps` and of `verify.roots`.
    public let files: [String]
    /// Things that work, but let other users of this machine read a secret.
    public let warnings: [String]

    public var names: Names { Names(prefix: topicPlan.prefix, environment: environment) }

    /// Reads every source.
    ///
    /// Files that settings name are opened only if `command` reads the setting; `check` reads all, or those of one
    /// role.
    ///
    /// - Parameters:
    ///   - role: the role that `check` checks; nil: it checks all roles.
    ///   - judge: says what is wrong with a property of librdkafka. What the properties mean is unknown here.
    public static func load(
        _ command: CommandName, of role: CommandName? = nil, arguments: ParsedArguments, options: [CommandOption] = [],
        environment: [(name: String, value: String)], judge: (PassThroughEntry) -> [PropertyComplaint]
    ) throws(ConfigurationFaults) -> Configuration {
        let settings = ResolvedSettings(
            SettingTable.schema, arguments: arguments, options: options, environment: environment,
            command: command.rawValue)
        var faults = settings.faults
        for entry in settings.passThrough {
            faults += judge(entry).map { entry.told($0) }
        }
        let readsApps = SettingTable.apps.definition.readers.contains((role ?? command).rawValue)
        let appsFile = readsApps ? settings[SettingTable.apps].map { AppsFile(path: $0) } : nil
        faults += appsFile?.faults ?? []
        faults += conflicts(in: settings, for: command, of: role)
        faults += unreadableFiles(in: settings, for: command, of: role)
        guard faults.isEmpty else { throw ConfigurationFaults(faults: faults) }
        return Configuration(settings, apps: appsFile?.apps ?? [], readBy: role ?? command)
    }

    private init(_ settings: ResolvedSettings, apps: [App], readBy command: CommandName) {
        typealias Table = SettingTable
        kafka = settings.passThrough
        topicPlan = TopicPlan(
            prefix: settings.required(Table.topicPrefix), partitions: settings.required(Table.partitions),
            replicationFactor: settings.required(Table.replicationFactor),
            minimumInSyncReplicas: settings.required(Table.minimumInSyncReplicas))
        let isNamed = settings.origin(of: Table.environment.definition.key) != .builtIn
        namedEnvironments =
            (isNamed ? settings.required(Table.environment) : EnvironmentChoice.both).environments
        environment = namedEnvironments[0]
        self.apps = apps
        verification = Verification(settings)
        ingest = Ingest(settings)
        service = Service(settings)
        worker = Worker(settings)
        tickInterval = .milliseconds(settings.required(Table.tickInterval))
        entitlementsLeeway = Self.leeway(settings, environment)
        churnZone = settings.required(Table.churnZone)
        api = ReadAPI(settings)
        consumption = Consumption(settings, environment)
        apple = Apple(settings)
        rows = settings.rows
        files =
            settings.files + [settings[Table.apps]].compactMap(\.self) + (settings[Table.verifyRoots] ?? [])
        warnings = settings.warnings + openKeys(settings, readBy: command) + foreignFiles(settings, readBy: command)
    }

    /// Subscriptions in sandbox renew within minutes: an hour of leeway would hide every expiry there.
    private static func leeway(_ settings: ResolvedSettings, _ environment: Contract.Environment) -> Duration {
        let leeway = SettingTable.entitlementsLeeway
        let isDefault = settings.origin(of: leeway.definition.key) == .builtIn
        return isDefault && environment == .sandbox ? .seconds(60) : .milliseconds(settings.required(leeway))
    }
}

/// What is wrong with a property of librdkafka.
public struct PropertyComplaint: Sendable {
    public let reason: String
    /// The whole message: the property, the reason, and what to do.
    public let words: String

    public init(reason: String, words: String) {
        self.reason = reason
        self.words = words
    }
}

extension PassThroughEntry {
    /// A message of the Kafka layer may repeat the value: a private key where a path is expected.
    fileprivate func told(_ complaint: PropertyComplaint) -> SettingFault {
        // Long enough to find it even if the end is cut off.
        let beginning = value.prefix(16)
        let mayBeSecret = isSecret || value.utf8.contains { $0 < 0x20 }
        guard mayBeSecret, !beginning.isEmpty, complaint.reason.contains(beginning) else {
            return SettingFault(origin, complaint.words)
        }
        let hint =
            wasReadFromFile ? "; it is the content of the file: without \"file:\" the path itself is the value" : ""
        return SettingFault(origin, "kafka.\(name): its value (not shown) cannot be used\(hint)")
    }
}
