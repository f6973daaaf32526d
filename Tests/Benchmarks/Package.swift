// swift-tools-version: 6.2
import PackageDescription

// A separate package, so that building and testing the product stays short.

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "perennial", path: "../..")],
    targets: [
        .target(
            name: "CLoops", dependencies: [.product(name: "CSIMDJSON", package: "perennial")],
            cSettings: [.define("_GNU_SOURCE"), .treatAllWarnings(as: .error)],
            linkerSettings: [.linkedLibrary("rdkafka"), .linkedLibrary("rocksdb")]),
        // The allocator of the program: rows must measure what users run.
        .executableTarget(
            name: "bench",
            dependencies: [
                "CLoops",
                .product(name: "Administration", package: "perennial"),
                .product(name: "Domain", package: "perennial"),
                .product(name: "IngestTestKit", package: "perennial"),
                .product(name: "Kafka", package: "perennial"),
                .product(name: "KafkaTestKit", package: "perennial"),
                .product(name: "ReadAPI", package: "perennial"),
                .product(name: "Sizing", package: "perennial"),
                .product(name: "Store", package: "perennial"),
                .product(name: "Worker", package: "perennial"),
                .product(name: "WorkerTestKit", package: "perennial"),
                .product(name: "ChurnWorker", package: "perennial"),
                .product(name: "ConsumptionSender", package: "perennial"),
                .product(name: "ConsumptionWorker", package: "perennial"),
                .product(name: "EntitlementsWorker", package: "perennial"),
                // Not linked, only built in the same build, because the rows start it as a program.
                .product(name: "perennial", package: "perennial"),
            ],
            swiftSettings: strict, linkerSettings: [.linkedLibrary("jemalloc")]),
    ],
    cLanguageStandard: .c17
)
