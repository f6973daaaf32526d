// `perennial version`: the versions of this program and its libraries.

import CommandLine
import Configuration
import JSON
import Platform
import Settings
import Tools
import Zone

extension Command {
    /// - Parameter libraries: tests pass other versions.
    static func version(of libraries: [LibraryVersion] = LibraryVersion.all) -> Command {
        Command(
            .version, "Shows the versions of Perennial and its libraries, and warns of their known faults.",
            options: [CommandOption("format", value: "text|json", effect: "For people, or for programs.")],
            details: "Warnings go to standard error; the exit code is 0 even with warnings.",
            action: .plain { invocation in
                guard let format = invocation.choice("format", of: ["text", "json"]) else { return .wrongUsage }
                let warnings = libraries.flatMap(\.warnings)
                invocation.output.data(format == "json" ? json(libraries, warnings) : text(libraries))
                for warning in warnings { invocation.output.message("warning: \(warning)") }
                return .done
            })
    }

    private static func text(_ libraries: [LibraryVersion]) -> String {
        let lines = libraries.map { library in
            "\(library.name) \(library.running)"
                + (library.running == library.headers ? "" : " (built with \(library.headers))")
        }
        return
            (["Perennial \(PerennialVersion.text)", "Swift \(PerennialVersion.swift)"] + lines
            + ["time zones \(Zone.dataVersion() ?? "of no known version")"]).joined(separator: "\n")
    }

    private static func json(_ libraries: [LibraryVersion], _ warnings: [String]) -> String {
        var writer = JSONWriter()
        writer.object { version in
            version.member("perennial", PerennialVersion.text)
            version.member("swift", PerennialVersion.swift)
            version.name("libraries")
            version.array { list in
                for library in libraries {
                    list.object {
                        $0.member("name", library.name)
                        $0.member("running", library.running)
                        $0.member("headers", library.headers)
                    }
                }
            }
            version.member("timeZones", Zone.dataVersion())
            version.name("warnings")
            version.array { list in
                for warning in warnings { list.string(warning) }
            }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
