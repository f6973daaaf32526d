// swift-tools-version: 6.2
import PackageDescription

// A separate package, because everything that it links is built with the fuzzer's instrumentation and the address sanitizer
// (Tests/Fuzz/run.sh passes the flags).

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableExperimentalFeature("Lifetimes"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "fuzzers",
    dependencies: [.package(name: "perennial", path: "../..")],
    targets: [
        .target(name: "CFuzzer"),
        .executableTarget(
            name: "fuzz",
            dependencies: [
                "CFuzzer", .product(name: "Domain", package: "perennial"), .product(name: "HTTP", package: "perennial"),
            ],
            swiftSettings: strict),
    ]
)
