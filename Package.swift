// swift-tools-version: 6.2
import PackageDescription

// Three layers above the values. Dependencies between modules only go down (checked by Tests/HouseTests).

// MARK: System: libraries in C and shims for them. No logic of the product.

let system: [Target] = [
    .systemLibrary(name: "CRDKafka", pkgConfig: "rdkafka", providers: [.apt(["librdkafka-dev"])]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CRocksDB", pkgConfig: "rocksdb", providers: [.apt(["librocksdb-dev"])]),
    .systemLibrary(name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
    .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .target(name: "CSIMDJSON", linkerSettings: [.linkedLibrary("simdjson")]),
    .target(name: "CCrypto", dependencies: ["COpenSSL"]),
    .target(name: "CPlatform"),
    .target(name: "CRocksDBVersion", linkerSettings: [.linkedLibrary("rocksdb")]),
]

// MARK: Values: codecs and cryptography as functions of their arguments. No I/O, no clock, no threads.

let values: [Target] = [
    .target(name: "JSON", dependencies: ["CSIMDJSON"]),
    .target(name: "Comparison", dependencies: ["JSON"]),
    .target(name: "Crypto", dependencies: ["CCrypto"]),
]

// MARK: Domain: pure values for Apple's data and our promises. No Foundation.

let domain: [Target] = [
    .target(name: "Contract"),
    .target(name: "Zone", dependencies: ["Contract"]),
    .target(name: "Records", dependencies: ["Contract", "Crypto", "JSON"]),
    .target(name: "AppStore", dependencies: ["Contract", "Crypto", "JSON", "Records"]),
    .target(name: "Notices", dependencies: ["Crypto", "JSON", "Records"]),
    .target(name: "SubscriptionHistory", dependencies: ["Crypto", "JSON", "Notices", "Records"]),
    .target(
        name: "Entitlements",
        dependencies: ["Contract", "Crypto", "JSON", "Notices", "Records", "SubscriptionHistory"]),
    .target(
        name: "Churn",
        dependencies: ["Contract", "Crypto", "JSON", "Notices", "Records", "SubscriptionHistory", "Zone"]),
    .target(name: "Consumption", dependencies: ["Contract", "Crypto", "JSON", "Notices", "Records"]),
]

// MARK: Engine: logs, workers, servers. It does not know about subscriptions.

let engine: [Target] = [
    .target(name: "Platform", dependencies: ["CPlatform"]),
    .target(name: "Log", dependencies: ["Platform"]),
    .target(name: "MemoryLog", dependencies: ["Log", "Platform"]),
    .target(name: "Store", dependencies: ["Platform"]),
    .target(name: "RocksStore", dependencies: ["CRocksDB", "Platform", "Store"]),
    .target(name: "Settings", dependencies: ["Platform"]),
    .target(name: "Telemetry", dependencies: ["Platform"]),
    .target(name: "HTTP", dependencies: ["CMicroHTTPD", "CPlatform", "CZlib", "Crypto", "Platform", "Telemetry"]),
    .target(name: "Kafka", dependencies: ["CRDKafka", "JSON", "Log", "Platform"]),
    .target(name: "Service", dependencies: ["Platform", "Telemetry"]),
    .target(name: "Administration", dependencies: ["HTTP", "Platform", "Service", "Telemetry"]),
    .target(name: "Runtime", dependencies: ["Log", "Platform", "Service", "Store", "Telemetry"]),
    .target(name: "Follow", dependencies: ["Log", "Platform", "Telemetry"]),
    .target(name: "HTTPClient", dependencies: ["CCurl", "CPlatform", "Platform"]),
    .target(name: "Revocation", dependencies: ["Crypto", "HTTPClient", "Platform", "Telemetry"]),
]

// MARK: Roles: they connect domain and engine.

let roles: [Target] = [
    .target(
        name: "Configuration",
        dependencies: ["Contract", "JSON", "Platform", "Settings", "Telemetry", "Zone"]),
    .target(
        name: "Clock", dependencies: ["Contract", "Kafka", "Log", "Platform", "Records", "Service", "Telemetry"]),
    .target(
        name: "Ingest",
        dependencies: [
            "AppStore", "Configuration", "Contract", "Crypto", "HTTP", "JSON", "Kafka", "Log", "Platform", "Records",
            "Revocation", "Service", "Settings", "Telemetry",
        ]),
    .target(name: "NotificationWorker", dependencies: ["Contract", "Log", "Records", "Runtime"]),
    .target(
        name: "EntitlementsWorker",
        dependencies: [
            "Contract", "Entitlements", "JSON", "Log", "Notices", "NotificationWorker", "Records", "Runtime",
            "SubscriptionHistory", "Telemetry",
        ]),
    .target(
        name: "ChurnWorker",
        dependencies: [
            "Churn", "Contract", "Crypto", "JSON", "Log", "Notices", "NotificationWorker", "Records", "Runtime",
            "SubscriptionHistory", "Telemetry", "Zone",
        ]),
    .target(name: "AppStoreAPI", dependencies: ["Contract", "Crypto", "HTTPClient", "JSON", "Platform"]),
    .target(
        name: "ConsumptionWorker",
        dependencies: [
            "Consumption", "Contract", "JSON", "Log", "Notices", "NotificationWorker", "Records", "Runtime",
            "Telemetry",
        ]),
    .target(
        name: "ConsumptionSender",
        dependencies: [
            "AppStoreAPI", "Consumption", "Contract", "Follow", "HTTPClient", "JSON", "Log", "Notices", "Platform",
            "Records", "Runtime", "Service", "Telemetry",
        ]),
    .target(
        name: "ReadAPI",
        dependencies: [
            "Churn", "Consumption", "Contract", "Entitlements", "Follow", "HTTP", "JSON", "Log", "Notices", "Platform",
            "Records", "Service", "Store", "Telemetry",
        ]),
    .target(name: "Simulation", dependencies: ["Contract", "Crypto", "JSON"]),
    .target(name: "Sizing", dependencies: ["Contract"]),
    .target(name: "CommandLine", dependencies: ["Configuration", "Platform", "Settings", "Telemetry"]),
    .target(
        name: "Simulator",
        dependencies: [
            "CommandLine", "Configuration", "Contract", "Crypto", "HTTP", "HTTPClient", "JSON", "Platform", "Settings",
            "Simulation", "Telemetry",
        ]),
    .target(
        name: "Demo",
        dependencies: [
            "AppStore", "AppStoreAPI", "Churn", "ChurnWorker", "Clock", "Cluster", "CommandLine", "Configuration",
            "Consumption", "ConsumptionSender", "ConsumptionWorker", "Contract", "Crypto", "Entitlements",
            "EntitlementsWorker", "HTTP", "HTTPClient", "Ingest", "JSON", "Kafka", "Log", "MemoryLog", "Notices",
            "Platform", "ReadAPI", "Runtime", "Service", "Settings", "Simulation", "Simulator", "Store", "Telemetry",
            "Zone",
        ]),
    .target(
        name: "Cluster",
        dependencies: [
            "Configuration", "Contract", "Kafka", "Log", "Platform", "Service", "Settings", "Telemetry",
        ]),
    .target(
        name: "Serving",
        dependencies: [
            "Administration", "Cluster", "CommandLine", "Configuration", "Kafka", "Platform", "Service", "Telemetry",
        ]),
    .target(
        name: "Workers",
        dependencies: [
            "ChurnWorker", "Cluster", "CommandLine", "Configuration", "Consumption", "ConsumptionWorker", "Contract",
            "Crypto", "Entitlements", "EntitlementsWorker", "Log", "NotificationWorker", "Platform", "RocksStore",
            "Runtime", "Service", "Serving", "Settings", "Telemetry", "Zone",
        ]),
    .target(
        name: "Tools",
        dependencies: [
            "AppStore", "COpenSSL", "CRocksDBVersion", "Churn", "ChurnWorker", "Cluster", "CommandLine", "Comparison",
            "Configuration", "Consumption", "Contract", "Crypto", "Entitlements", "EntitlementsWorker", "HTTP",
            "HTTPClient", "Ingest", "JSON", "Kafka", "Log", "Notices", "NotificationWorker", "Platform", "ReadAPI",
            "Records", "Revocation", "RocksStore", "Runtime", "Service", "Settings", "Sizing", "Store", "Telemetry",
            "Workers", "Zone",
        ]),
    .target(
        name: "Roles",
        dependencies: [
            "AppStore", "AppStoreAPI", "Churn", "Clock", "Cluster", "CommandLine", "Configuration", "ConsumptionSender",
            "Contract", "Crypto", "Demo", "HTTPClient", "Ingest", "JSON", "Kafka", "Platform", "ReadAPI", "RocksStore",
            "Runtime", "Service", "Serving", "Settings", "Simulator", "Store", "Telemetry", "Tools", "Workers", "Zone",
        ]),
    // The allocator replaces that of glibc in this program.
    .executableTarget(
        name: "perennial", dependencies: ["CommandLine", "Platform", "Roles"],
        linkerSettings: [.linkedLibrary("jemalloc")]),
]

// MARK: Test support (a product, because users of the modules test with it), programs that tests start and kill, tests.

let testSupport: [Target] = [
    .target(name: "CTestKit"),
    .target(name: "KafkaTestKit", dependencies: ["CTestKit", "Platform"]),
    .target(
        name: "WorkerTestKit",
        dependencies: ["Log", "LogTestKit", "MemoryLog", "Platform", "Runtime", "Store", "Telemetry"]),
    .target(name: "RDKafkaTestKit", dependencies: ["CRDKafka", "Kafka"]),
    .target(name: "HTTPTestKit", dependencies: ["HTTPClient", "Platform"]),
    .target(name: "TestTraits", dependencies: ["KafkaTestKit"]),
    .target(name: "LogTestKit", dependencies: ["Log", "MemoryLog", "Platform"]),
    .target(name: "CLoad", dependencies: ["CCurl"]),
    .target(
        name: "IngestTestKit",
        dependencies: [
            "CLoad", "Contract", "Crypto", "HTTPClient", "HTTPTestKit", "KafkaTestKit", "Platform", "Simulation",
        ]),
    .target(
        name: "RenewalsExample", dependencies: ["Contract", "JSON", "Log", "Runtime"], path: "Tests/Example"),
    .target(name: "Schemas", dependencies: ["JSON", "Platform"], path: "Tests/Kits/Schemas"),
    .target(name: "Ledger", dependencies: ["Log", "Platform", "Runtime"], path: "Tests/Kits/Ledger"),
    .target(
        name: "MakeBelieve",
        dependencies: [
            "AppStore", "Contract", "Crypto", "JSON", "Log", "LogTestKit", "MemoryLog", "NotificationWorker",
            "Platform", "Records", "Runtime", "Simulation", "Store", "WorkerTestKit",
        ], path: "Tests/Kits/MakeBelieve"),
    .target(name: "PlainChurn", dependencies: ["Crypto"], path: "Tests/Kits/PlainChurn"),
    .target(name: "TruthCheck", dependencies: ["JSON"], path: "Tests/Kits/TruthCheck"),
    .executableTarget(
        name: "ledger-worker",
        dependencies: [
            "Administration", "Kafka", "Ledger", "Log", "Platform", "RocksStore", "Runtime", "Service", "Store",
            "Telemetry",
        ],
        path: "Tests/Programs/ledger-worker"),
    .executableTarget(
        name: "transform-worker", dependencies: ["Kafka", "Log", "Platform"],
        path: "Tests/Programs/transform-worker"),
    .executableTarget(
        name: "renewals-worker",
        dependencies: [
            "Administration", "Contract", "Kafka", "Log", "Platform", "RenewalsExample", "RocksStore", "Runtime",
            "Service", "Telemetry",
        ], path: "Tests/Programs/renewals-worker"),
    .executableTarget(
        name: "service-probe", dependencies: ["Administration", "Platform", "Service", "Telemetry"],
        path: "Tests/Programs/service-probe"),
    .executableTarget(name: "platform-probe", dependencies: ["Platform"], path: "Tests/Programs/platform-probe"),
    .executableTarget(
        name: "replay-probe", dependencies: ["Ledger", "Log", "LogTestKit", "MemoryLog", "Runtime", "WorkerTestKit"],
        path: "Tests/Programs/replay-probe"),
    .executableTarget(
        name: "store-probe", dependencies: ["Platform", "RocksStore", "Store"], path: "Tests/Programs/store-probe"),
    .target(name: "ClockShift", path: "Tests/Programs/clock-shift"),
]

let tests: [Target] = [
    .testTarget(name: "ContractTests", dependencies: ["Contract"]),
    .testTarget(name: "ZoneTests", dependencies: ["Configuration", "Contract", "Zone"]),
    .testTarget(name: "PlatformTests", dependencies: ["KafkaTestKit", "Platform", "platform-probe"]),
    .testTarget(
        name: "RuntimeTests",
        dependencies: [
            "KafkaTestKit", "Ledger", "Log", "LogTestKit", "MemoryLog", "Platform", "RocksStore", "Runtime", "Service",
            "Store", "Telemetry", "TestTraits", "WorkerTestKit", "replay-probe",
        ]),
    .testTarget(
        name: "LogTests",
        dependencies: ["KafkaTestKit", "Log", "LogTestKit", "MemoryLog", "Platform", "TestTraits"]),
    .testTarget(
        name: "ExampleTests",
        dependencies: [
            "Contract", "Log", "MemoryLog", "RenewalsExample", "Runtime", "WorkerTestKit", "renewals-worker",
        ]),
    .testTarget(
        name: "StoreTests",
        dependencies: ["KafkaTestKit", "Platform", "RocksStore", "Store", "TestTraits", "store-probe"]),
    .testTarget(name: "JSONTests", dependencies: ["JSON"]),
    .testTarget(name: "ComparisonTests", dependencies: ["Comparison"]),
    .testTarget(name: "CryptoTests", dependencies: ["Crypto"], resources: [.copy("Fixtures")]),
    .testTarget(
        name: "AppStoreTests", dependencies: ["AppStore", "Contract", "Crypto", "JSON", "KafkaTestKit", "Records"]),
    .testTarget(name: "RecordsTests", dependencies: ["Contract", "JSON", "Records", "Schemas"]),
    .testTarget(
        name: "EntitlementsTests",
        dependencies: [
            "Contract", "Entitlements", "JSON", "MakeBelieve", "Notices", "Simulation", "SubscriptionHistory",
        ],
        exclude: ["Fixtures", "Rules.md"]),
    .testTarget(
        name: "ChurnTests",
        dependencies: [
            "Churn", "Configuration", "Contract", "Crypto", "Entitlements", "JSON", "MakeBelieve", "Notices",
            "PlainChurn", "Simulation", "SubscriptionHistory", "Zone",
        ],
        exclude: ["Numbers.md"]),
    .testTarget(
        name: "EntitlementsWorkerTests",
        dependencies: [
            "Contract", "Entitlements", "EntitlementsWorker", "JSON", "KafkaTestKit", "Log", "LogTestKit",
            "MakeBelieve", "MemoryLog", "NotificationWorker", "Platform", "Runtime", "Schemas", "Simulation",
            "Telemetry", "TruthCheck", "WorkerTestKit",
        ]),
    .testTarget(
        name: "ChurnWorkerTests",
        dependencies: [
            "Churn", "ChurnWorker", "Configuration", "Contract", "JSON", "Log", "LogTestKit", "MakeBelieve",
            "MemoryLog", "NotificationWorker", "PlainChurn", "Runtime", "Schemas", "Simulation", "Store", "Telemetry",
            "WorkerTestKit", "Zone",
        ]),
    .testTarget(
        name: "HTTPClientTests",
        dependencies: ["HTTP", "HTTPClient", "HTTPTestKit", "KafkaTestKit", "Platform", "Telemetry", "TestTraits"]),
    .testTarget(
        name: "RevocationTests",
        dependencies: [
            "AppStore", "Crypto", "HTTP", "HTTPClient", "Ingest", "KafkaTestKit", "Platform", "Revocation", "Telemetry",
            "TestTraits", "perennial",
        ]),
    .testTarget(
        name: "SimulationTests", dependencies: ["AppStore", "Contract", "Crypto", "JSON", "Records", "Simulation"]),
    .testTarget(name: "SizingTests", dependencies: ["Contract", "Sizing"]),
    .testTarget(
        name: "IngestTests",
        dependencies: [
            "AppStore", "Configuration", "Contract", "Crypto", "HTTP", "HTTPClient", "HTTPTestKit", "Ingest", "JSON",
            "Kafka", "KafkaTestKit", "Log", "MemoryLog", "Platform", "RDKafkaTestKit", "Records", "Service", "Settings",
            "Simulation", "Telemetry", "TestTraits",
        ]),
    .testTarget(
        name: "ReadAPITests",
        dependencies: [
            "Churn", "Consumption", "Contract", "Entitlements", "Follow", "HTTP", "HTTPClient", "HTTPTestKit", "JSON",
            "KafkaTestKit", "Log", "LogTestKit", "MemoryLog", "Platform", "ReadAPI", "Records", "Schemas", "Service",
            "Store", "Telemetry", "TestTraits", "Zone",
        ]),
    .testTarget(
        name: "ClockTests",
        dependencies: [
            "Clock", "Contract", "Kafka", "KafkaTestKit", "Log", "MemoryLog", "Platform", "Records", "Telemetry",
            "TestTraits",
        ]),
    .testTarget(
        name: "ConsumptionTests",
        dependencies: [
            "Consumption", "Contract", "Crypto", "JSON", "KafkaTestKit", "MakeBelieve", "Notices", "Platform",
            "Records",
            "Schemas", "Simulation",
        ]),
    .testTarget(
        name: "FollowTests",
        dependencies: ["Follow", "KafkaTestKit", "Log", "LogTestKit", "MemoryLog", "Platform", "Telemetry"]),
    .testTarget(
        name: "AppStoreAPITests",
        dependencies: [
            "AppStoreAPI", "Contract", "Crypto", "HTTP", "HTTPClient", "JSON", "KafkaTestKit", "Platform", "Telemetry",
            "TestTraits",
        ]),
    .testTarget(
        name: "ConsumptionWorkerTests",
        dependencies: [
            "Consumption", "ConsumptionWorker", "Contract", "JSON", "Log", "LogTestKit", "MakeBelieve", "MemoryLog",
            "Notices", "Platform", "Runtime", "Schemas", "Simulation", "Telemetry", "WorkerTestKit",
        ]),
    .testTarget(
        name: "ConsumptionSenderTests",
        dependencies: [
            "AppStoreAPI", "Consumption", "ConsumptionSender", "ConsumptionWorker", "Contract", "Crypto", "Follow",
            "HTTP", "HTTPClient", "JSON", "KafkaTestKit", "Log", "LogTestKit", "MemoryLog", "Notices", "Platform",
            "Runtime", "Service", "Telemetry", "TestTraits", "WorkerTestKit",
        ]),
    .testTarget(name: "SettingsTests", dependencies: ["Settings"]),
    .testTarget(name: "TelemetryTests", dependencies: ["KafkaTestKit", "Telemetry"]),
    .testTarget(
        name: "HTTPTests",
        dependencies: ["HTTP", "HTTPClient", "HTTPTestKit", "KafkaTestKit", "Platform", "Telemetry", "TestTraits"]),
    .testTarget(name: "ServiceTests", dependencies: ["KafkaTestKit", "service-probe"]),
    .testTarget(name: "KafkaTests", dependencies: ["Kafka", "KafkaTestKit", "Log", "Platform", "RDKafkaTestKit"]),
    .testTarget(
        name: "BrokerTests",
        dependencies: [
            "AppStore", "Clock", "Contract", "Crypto", "Follow", "HTTP", "HTTPClient", "HTTPTestKit", "Ingest",
            "IngestTestKit", "JSON", "Kafka", "KafkaTestKit", "Ledger", "Log", "LogTestKit", "MakeBelieve",
            "PlainChurn", "Platform", "RDKafkaTestKit", "Records", "Runtime", "Simulation", "Telemetry", "TruthCheck",
            "ledger-worker", "perennial", "transform-worker",
        ],
        exclude: ["Fixtures"]),
    .testTarget(
        name: "ConfigurationTests",
        dependencies: ["Cluster", "Configuration", "Contract", "Kafka", "Platform", "Settings", "Zone"]),
    .testTarget(
        name: "RolesTests",
        dependencies: [
            "AppStore", "Churn", "Cluster", "CommandLine", "Configuration", "Consumption", "ConsumptionWorker",
            "Contract", "Crypto", "Demo", "Entitlements", "EntitlementsWorker", "HTTP", "HTTPClient", "HTTPTestKit",
            "JSON", "Kafka", "KafkaTestKit", "Ledger", "Log", "MemoryLog", "Platform", "RDKafkaTestKit", "ReadAPI",
            "Roles", "Runtime", "Service", "Settings", "Simulation", "Simulator", "Store", "Telemetry", "Tools",
            "WorkerTestKit", "Workers", "Zone", "perennial",
        ], resources: [.copy("Cards")]),
    .testTarget(name: "HouseTests"),
]

// MARK: Each layer is a folder of Sources. The tests of a module are in the folder of its layer in Tests.

let layers = [
    ("System", system), ("Values", values), ("Domain", domain), ("Engine", engine), ("Roles", roles),
    ("TestKits", testSupport),
]
for (layer, targets) in layers {
    for target in targets where target.path == nil { target.path = "Sources/\(layer)/\(target.name)" }
    for test in tests where targets.contains(where: { $0.name + "Tests" == test.name }) {
        test.path = "Tests/\(layer)/\(test.name)"
    }
}

// MARK: The same strict settings for every target.

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableExperimentalFeature("Lifetimes"),
    .treatAllWarnings(as: .error),
]

// Tests/Mutants/run.sh builds once for every mutant and names the tests that must fail: the others need not be built.
let namedTests = Context.environment["PERENNIAL_TESTS"].map { $0.split(separator: ",").map(String.init) }
let wantedTests = tests.filter { namedTests?.contains($0.name) ?? true }

let inC: Set = ["CCrypto", "CLoad", "CPlatform", "CRocksDBVersion", "CSIMDJSON", "CTestKit", "ClockShift"]
let all = system + values + domain + engine + roles + testSupport + wantedTests
for target in all where target.type != .system {
    target.swiftSettings = (target.swiftSettings ?? []) + strict
    target.cSettings = [.define("_GNU_SOURCE"), .treatAllWarnings(as: .error)]
    target.cxxSettings = [.treatAllWarnings(as: .error)]
    // Ends the process if a C library call overruns a buffer of known size; it needs the optimiser. Swift knows no such sizes, and with
    // this the headers of Debian 13 have two functions of one name for it.
    if inC.contains(target.name) {
        target.cSettings?.append(.define("_FORTIFY_SOURCE", to: "2", .when(configuration: .release)))
        target.cxxSettings?.append(.define("_FORTIFY_SOURCE", to: "2", .when(configuration: .release)))
    }
}

let package = Package(
    name: "perennial",
    products: [
        .executable(name: "perennial", targets: ["perennial"]),
        .library(name: "Kafka", targets: ["Kafka", "Log", "Platform"]),
        .library(name: "Store", targets: ["RocksStore", "Store"]),
        .library(name: "KafkaTestKit", targets: ["KafkaTestKit"]),
        .library(
            name: "Domain",
            targets: [
                "AppStore", "Churn", "Consumption", "Contract", "Crypto", "Entitlements", "JSON", "Notices", "Records",
                "SubscriptionHistory", "Zone",
            ]),
        .library(name: "ChurnWorker", targets: ["ChurnWorker"]),
        .library(name: "ConsumptionSender", targets: ["AppStoreAPI", "ConsumptionSender", "Crypto", "Platform"]),
        .library(name: "ConsumptionWorker", targets: ["ConsumptionWorker"]),
        .library(name: "EntitlementsWorker", targets: ["EntitlementsWorker"]),
        .library(name: "Worker", targets: ["Log", "Runtime", "Store", "Telemetry"]),
        .library(name: "WorkerTestKit", targets: ["LogTestKit", "MemoryLog", "WorkerTestKit"]),
        .library(name: "Administration", targets: ["Administration", "Service"]),
        // For Tests/Fuzz.
        .library(name: "HTTP", targets: ["HTTP", "Platform", "Telemetry"]),
        // For Tests/Benchmarks.
        .library(name: "CSIMDJSON", targets: ["CSIMDJSON"]),
        .library(name: "IngestTestKit", targets: ["IngestTestKit"]),
        .library(name: "ReadAPI", targets: ["ReadAPI"]),
        .library(name: "Sizing", targets: ["Sizing"]),
        // Preloaded into programs under test. It is a product, because only products become files.
        .library(name: "ClockShift", type: .dynamic, targets: ["ClockShift"]),
    ],
    targets: all,
    cLanguageStandard: .c17,
    cxxLanguageStandard: .cxx17
)
