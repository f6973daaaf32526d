import Glibc
import KafkaTestKit
import Platform
import Testing

/// These tests run one after the other: several of them start brokers, and the machine may have two cores.
@Suite(.serialized) struct `The test kit` {}

/// The state letter of a process, such as `T` for stopped; nil if it is gone or is a zombie.
private func state(of processID: Int32) -> Character? {
    guard let bytes = try? readFile("/proc/\(processID)/stat") else { return nil }
    let afterName = String(decoding: bytes, as: UTF8.self).split(separator: ")").last ?? ""
    let letter = afterName.drop { $0 == " " }.first
    return letter == "Z" || letter == "X" ? nil : letter
}

private func firstNumber(_ text: String) throws -> Int32 {
    try #require(text.split(separator: "\n").compactMap { Int32($0) }.first)
}

// MARK: Programs

extension `The test kit` {
    @Suite struct `starting programs` {
        @Test func `hands over input and brings back both outputs and the code`() async throws {
            let result = try await run("sh", ["-c", "cat; echo wrong >&2; exit 7"], stdin: "a line\n")
            #expect(result.code == 7)
            #expect(result.standardOutput == "a line\n")
            #expect(result.standardError == "wrong\n")
        }

        @Test func `keeps the order of writing when errors go with the output`() async throws {
            let child = try ChildProcess("sh", ["-c", "echo 1; echo 2 >&2; echo 3"], mergesErrors: true)
            _ = try await child.wait()
            #expect(child.standardOutput == "1\n2\n3\n")
        }

        @Test func `sets environment and directory`() async throws {
            let child = try ChildProcess(
                "sh", ["-c", "echo $A; pwd"], environment: .inherited(adding: ["A": "b=c"]), workingDirectory: "/usr")
            _ = try await child.wait()
            #expect(child.standardOutput == "b=c\n/usr\n")
        }

        @Test func `says which program is missing`() async throws {
            #expect { _ = try ChildProcess("no-such-program") } throws: { "\($0)".contains("no-such-program") }
            #expect(throws: SystemFailure(operation: "start /no/such", code: ENOENT)) { try ChildProcess("/no/such") }
            #expect(throws: SystemFailure.self) { try ChildProcess("true", ["a\0b"]) }
        }

        @Test func `gives it default signals, though ours are blocked`() async throws {
            // Changes only this thread's mask and one disposition: the test process's streams and other threads stay unchanged.
            let before = signal(SIGPIPE, SIG_IGN)
            defer { signal(SIGPIPE, before) }
            let child = try await onOwnThread("blocked") {
                var all = sigset_t()
                sigfillset(&all)
                pthread_sigmask(SIG_SETMASK, &all, nil)
                return try ChildProcess("grep", ["-E", "SigBlk|SigIgn", "/proc/self/status"])
            }
            _ = try await child.wait()
            let sets = child.standardOutput.split(separator: "\n").compactMap { line in
                line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) }
            }
            // Signals 32 and 33 belong to the C library, which lets nobody change them.
            #expect(sets.map { $0 & ~(0b11 << 31) } == [0, 0])
        }

        @Test func `gives it no descriptor of ours`() async throws {
            // Of the kind that is inherited across an exec.
            let leak = dup(2)
            defer { close(leak) }
            let result = try await run("sh", ["-c", "ls /proc/$$/fd"])
            #expect(result.standardOutput == "0\n1\n2\n")
        }

        @Test func `shows output while it runs, stops it, lets it go on, kills it`() async throws {
            // A single process: a shell that is stopped while it starts another process waits for it in state D.
            let child = try ChildProcess("sh", ["-c", "echo ready; exec sleep 67"])
            try await child.waitUntilPrinted("ready")
            child.suspend()
            try await waitUntil("it stands still") { state(of: child.processID) == "T" }
            child.resume()
            try await waitUntil("it goes on") { state(of: child.processID) != "T" }
            #expect(child.isRunning)
            child.killNow()
            #expect(try await child.wait() == .killed(signal: SIGKILL))
            #expect(state(of: child.processID) == nil)
        }

        @Test func `kills what does not end in time`() async throws {
            await #expect(throws: NotInTime.self) { try await run("sleep", ["61"], timeout: .milliseconds(100)) }
            let deaf = try ChildProcess("sh", ["-c", "trap '' TERM; echo ready; while :; do sleep 1; done"])
            try await deaf.waitUntilPrinted("ready")
            #expect(try await deaf.terminate(within: .milliseconds(100)) == .killed(signal: SIGKILL))
        }

        @Test func `does not wait for words of a program that has ended, and shows its last ones`() async throws {
            let child = try ChildProcess("sh", ["-c", "echo the cause >&2; exit 4"])
            await #expect { try await child.waitUntilPrinted("ready", within: .seconds(60)) } throws: {
                "\($0)".contains("exit code 4") && "\($0)".contains("the cause")
            }
        }

        @Test(arguments: ["wait", "exit 0"])
        func `leaves nothing behind of what the program started`(ending: String) async throws {
            let child = try ChildProcess("sh", ["-c", "sleep 62 & echo $!; \(ending)"])
            try await waitUntil("it has started its own child") { child.standardOutput.hasSuffix("\n") }
            let grandchild = try firstNumber(child.standardOutput)
            if ending == "wait" { child.killNow() }
            _ = try await child.wait()
            try await waitUntil("the grandchild is gone") { state(of: grandchild) == nil }
        }

        @Test func `ends it with its last reference`() async throws {
            var child: ChildProcess? = try ChildProcess("sleep", ["63"])
            let processID = try #require(child?.processID)
            child = nil
            try await waitUntil("it is gone") { state(of: processID) == nil }
        }

        @Test func `lets it outlive the thread that started it`() async throws {
            let child = try await onOwnThread("short-lived") { try ChildProcess("sleep", ["64"]) }
            // The kernel sends the signal when the thread has really ended, which is after its work.
            try await waitUntil("the thread is gone") {
                try await run("sh", ["-c", "cat /proc/\(getpid())/task/*/comm"]).standardOutput
                    .split(separator: "\n").contains("short-lived") == false
            }
            #expect(child.isRunning)
        }

        @Test func `lets nothing outlive a test process that is killed`() async throws {
            let parent = await #expect(processExitsWith: .signal(SIGKILL), observing: [\.standardOutputContent]) {
                let child = try ChildProcess("sleep", ["65"])
                printData("\n\(child.processID)")
                kill(getpid(), SIGKILL)
            }
            let output = String(decoding: try #require(parent).standardOutputContent, as: UTF8.self)
            let orphan = try firstNumber(output)
            try await waitUntil("the orphan is gone") { state(of: orphan) == nil }
        }

        @Test func `removes directories at exit, also those that nobody let go of`() async throws {
            let parent = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                let scratch = try ScratchDirectory("kafka-test-kit-exit")
                _ = try scratch.write("text", to: "file")
                printData("\n\(scratch.path)")
                withExtendedLifetime(scratch) { exit(0) }
            }
            let output = String(decoding: try #require(parent).standardOutputContent, as: UTF8.self)
            let path = try #require(output.split(separator: "\n").first { $0.contains("kafka-test-kit-exit") })
            #expect(access(String(path), F_OK) != 0)
        }

        @Test func `finds the programs of the package`() throws {
            #expect(access(try productPath("perennial"), X_OK) == 0)
            #expect { try productPath("no-such") } throws: { "\($0)".contains("swift build --product no-such") }
        }
    }
}

// MARK: A broken distribution

extension `The test kit` {
    @Suite struct `without a Kafka` {
        /// Scripts in place of Kafka's.
        private func distribution(in scratch: ScratchDirectory, start: String) async throws -> KafkaDistribution {
            let home = scratch.path
            #expect(try await run("mkdir", ["\(home)/bin"]).code == 0)
            for (name, text) in [("kafka-storage.sh", "exit 0"), ("kafka-server-start.sh", start)] {
                let path = try scratch.write("#!/bin/sh\n\(text)\n", to: "bin/\(name)")
                chmod(path, 0o700)
            }
            return KafkaDistribution(home: home)
        }

        @Test func `shows the end of the log of a broker that does not come up`() async throws {
            let scratch = try ScratchDirectory("kafka-test-kit-fake")
            let broken = try await distribution(in: scratch, start: "seq 1 40; echo the cause >&2; exit 3")
            let fault = await #expect(throws: KafkaTestFault.self) { try await KafkaCluster.start(broken) }
            let words = try #require(fault).description.split(separator: "\n").map(String.init)
            #expect(words.first?.contains("exit code 3") == true)
            #expect(Array(words.dropFirst()) == (12...40).map(String.init) + ["the cause"])
        }

        @Test func `kills a broker that never answers`() async throws {
            let scratch = try ScratchDirectory("kafka-test-kit-fake")
            let stuck = try await distribution(in: scratch, start: "echo $$ > \(scratch.path)/pid; exec sleep 66")
            var options = KafkaOptions()
            // Longer than a shell takes to write its number on a busy machine.
            options.startLimit = .seconds(5)
            await #expect(throws: KafkaTestFault.self) { try await KafkaCluster.start(stuck, options) }
            let pid = try firstNumber(String(decoding: try readFile("\(scratch.path)/pid"), as: UTF8.self))
            #expect(state(of: pid) == nil)
        }

        @Test func `tries other ports when a stranger has taken one`() async throws {
            let scratch = try ScratchDirectory("kafka-test-kit-fake")
            let unlucky = try await distribution(
                in: scratch, start: "grep ^listeners= $1 >> \(scratch.path)/tried; echo Address already in use; exit 1")
            await #expect(throws: KafkaTestFault.self) { try await KafkaCluster.start(unlucky) }
            let tried = String(decoding: try readFile("\(scratch.path)/tried"), as: UTF8.self).split(separator: "\n")
            #expect(tried.count == 3)
            #expect(Set(tried).count == 3)
        }

        @Test func `says what KAFKA_HOME should be`() async throws {
            await #expect {
                _ = try await KafkaCluster.start(KafkaDistribution(home: "/usr"))
            } throws: { "\($0)".contains("set KAFKA_HOME") }
        }

        @Test func `refuses options that no broker could be started with`() async throws {
            let home = KafkaDistribution(home: "/usr")
            for change in [
                { $0.nodes = 2 }, { $0.properties = ["a": "b\nc=d"] },
                { $0.credentials = .init(user: "a\"", password: "b") },
                { $0.credentials = .init(user: "a", password: "") },
            ] as [(inout KafkaOptions) -> Void] {
                var options = KafkaOptions()
                change(&options)
                await #expect { _ = try await KafkaCluster.start(home, options) } throws: {
                    !"\($0)".contains("KAFKA_HOME")
                }
            }
        }

        @Test func `takes the named Kafka before one of its own, and an empty name for none`() {
            let named = BrokerSource(environment: [("KAFKA_BOOTSTRAP_SERVERS", "a:1"), ("KAFKA_HOME", "/k")])
            #expect(named.namedServers == "a:1" && named.isAvailable && named.canStartBrokers)
            let own = BrokerSource(environment: [("KAFKA_BOOTSTRAP_SERVERS", ""), ("KAFKA_HOME", "/k")])
            #expect(own.namedServers == nil && own.isAvailable && own.canStartBrokers)
            let none = BrokerSource(environment: [("KAFKA_HOME", "")])
            #expect(!none.isAvailable && !none.canStartBrokers)
            #expect { try none.requireDistribution() } throws: { "\($0)".contains("KAFKA_HOME") }
        }
    }
}
