// Other people's libraries, asked for a second opinion by scripts of Tests/Interop.

import Glibc
import Platform

package enum Interop {
    /// Where the package lies: this file is two folders below.
    private static let root = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
    private static let scripts = "\(root)/Tests/Interop"

    /// Installed, and what is pinned today: an older installation would have another opinion.
    package static let isInstalled: Bool = {
        let pinned = try? readFile("\(scripts)/requirements.txt")
        let installed = try? readFile("\(root)/.build/interop/requirements.txt")
        return pinned != nil && pinned == installed
    }()

    package static let absence = "other libraries are not installed: Tests/Interop/setup.sh says why, and installs them"

    /// The folder of the schemas that every record is held to.
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

    /// What Apple's own library makes of the body of a consumption request.
    package struct BodyOpinion: Sendable, Equatable {
        /// No member and no value that the library does not know, or would write in another way.
        package let isTaken: Bool
        /// The fields as the library reads them, values by their names, JSON with sorted names; or why it is not taken.
        package let words: String
    }

    /// One opinion for each body, in their order. A body is one line of JSON.
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
