// A trait for tests that block.

import KafkaTestKit
public import Testing

/// Runs each test on its own thread. Tests that block in C calls would otherwise occupy the few threads of the pool and
/// delay all other tests, some of which measure time.
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
