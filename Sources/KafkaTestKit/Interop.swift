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
