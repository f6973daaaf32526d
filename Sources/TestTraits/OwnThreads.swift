// A trait for tests that block.

import KafkaTestKit
public import Testing

/// Runs a test, or each test of a suite, on a thread of its own. Tests that block in C calls would hold the few threads of the
/// pool, and with them all others, which measure time.
public struct OwnThreads: SuiteTrait, TestTrait, TestScoping {
    public let isRecursive = true

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withoutActuallyEscaping(function) { function in try await blocking(function) }
    }
}

extension Trait where Self == OwnThreads {
    public static var ownThreads: OwnThreads { OwnThreads() }
}
