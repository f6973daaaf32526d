// Runs scripts of Tests/Interop, which use other people's libraries to check our results.

import Glibc
import Platform

package enum Interop {
    /// The root of the package; this file is two folders below.
    private static let root = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined()
    private static let scripts = "\(root)/Tests/Interop"

    /// Installed with the pinned versions: an older installation may give another opinion.
    package static let isInstalled: Bool = {
        let pinned = try? readFile("\(scripts)/requirements.txt")
        let installed = try? readFile("\(root)/.build/interop/requirements.txt")
        return pinned != nil && pinned == installed
    }()

    package static let absence = "other libraries are not installed: Tests/Interop/setup.sh explains and installs them"

    /// The folder of the schemas that every record must match.
    package static let schemas = "\(root)/deploy/schemas"

    package static func run(
        _ script: String, _ arguments: [String], stdin: String = "", timeout: Duration = .seconds(120)
    ) async throws -> ProgramResult {
        try await KafkaTestKit.run(
            "\(root)/.build/interop/bin/python", ["\(scripts)/\(script)"] + arguments, environment: .only([:]),
            workingDirectory: "/", stdin: stdin, timeout: timeout)
    }
}

// MARK: The App Store Server API

extension Interop {
    package enum ConsumptionVersion: String, Sendable { case v1, v2 }

    /// The opinion of Apple's own library on the body of a consumption request.
    package struct BodyOpinion: Sendable, Equatable {
        /// The library knows every member and value, and would write them in the same way.
        package let isTaken: Bool
        /// The fields as the library reads them (values by their names, JSON with sorted names), or why it rejects the
        /// body.
        package let words: String
    }

    /// One opinion for each body, in the same order. A body is one line of JSON.
    package static func opinions(
        on bodies: [(version: ConsumptionVersion, body: [UInt8])]
    ) async throws -> [BodyOpinion] {
        let lines = bodies.map { version, body in
            #"{"version":"\#(version.rawValue)","body":\#(String(decoding: body, as: UTF8.self))}"#
        }
        guard lines.allSatisfy({ !$0.utf8.contains(UInt8(ascii: "\n")) }) else {
            throw KafkaTestFault("a body has more than one line")
        }
        let result = try await run("check_api.py", ["bodies", "-"], stdin: lines.map { $0 + "\n" }.joined())
        let opinions = result.standardOutput.split(separator: "\n").map { line in
            line.hasPrefix("ok ")
                ? BodyOpinion(isTaken: true, words: String(line.dropFirst(3)))
                : BodyOpinion(isTaken: false, words: String(line.trimmingPrefix("refused: ")))
        }
        guard result.code == 0, opinions.count == bodies.count else {
            throw KafkaTestFault("\(opinions.count) opinions on \(bodies.count) bodies: \(result.words)")
        }
        return opinions
    }
}
