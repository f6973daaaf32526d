import Foundation
import Testing

@testable import Settings

private enum Colour: String, CaseIterable { case red, green, blue }

private let name = Setting("name", default: "nobody", .pathOrText, readBy: ["run", "other"], effect: "")
private let port = Setting("listen.port", default: "80", .integer(1...65535), readBy: ["run"], effect: "")
private let colour = Setting("colour", default: "red", .choice as SettingKind<Colour>, readBy: ["run"], effect: "")
private let bold = Setting("bold", default: "false", .flag, readBy: ["run"], effect: "")
private let token = Setting("token", .pathOrText, secret: true, readBy: ["run"], effect: "")
private let paths = Setting("paths", .list(of: .path), readBy: ["run"], effect: "")
private let pin = Setting("pin", .integer(1000...9999), secret: true, readBy: ["run"], effect: "")

private let schema = SettingsSchema(
    definitions: [
        name.definition, port.definition, colour.definition, bold.definition, token.definition, paths.definition,
        pin.definition,
    ],
    family: PassThroughFamily(
        name: "kafka", scopes: ["consumer", "producer", "admin"], examples: ["bootstrap.servers"]),
    variablePrefix: "EXAMPLE_", defaultFile: "/nonexistent/example.conf", help: "example settings")

private func resolve(
    _ arguments: [String] = [], _ environment: KeyValuePairs<String, String> = [:], file: String? = nil,
    command: String? = "run"
) throws -> ResolvedSettings {
    let path = NSTemporaryDirectory() + "settings-\(UUID().uuidString).conf"
    if let file { try file.write(toFile: path, atomically: true, encoding: .utf8) }
    defer { if file != nil { try? FileManager.default.removeItem(atPath: path) } }
    let options = [CommandOption("help", effect: ""), CommandOption("format", value: "F", effect: "")]
    return ResolvedSettings(
        schema, arguments: ParsedArguments((file == nil ? [] : ["--config", path]) + arguments, options: options),
        options: options, environment: environment.map { ($0.key, $0.value) }, command: command)
}

private func faults(_ arguments: [String] = [], _ environment: KeyValuePairs<String, String> = [:]) throws -> [String] {
    try resolve(arguments, environment).faults.map(\.description)
}

private func withFile(_ content: [UInt8], _ body: (String) throws -> Void) throws {
    let path = NSTemporaryDirectory() + "value-\(UUID().uuidString)"
    try Data(content).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    try body(path)
}

@Suite struct `Resolving settings` {
    @Test func `prefers flag over variable over file over default`() throws {
        let file = "name = file\nlisten.port = 1\ncolour = green"
        #expect(try resolve().required(name) == "nobody")
        #expect(try resolve(file: file).required(name) == "file")
        #expect(try resolve([], ["EXAMPLE_NAME": "variable"], file: file).required(name) == "variable")
        let settings = try resolve(
            ["--name", "flag"], ["EXAMPLE_NAME": "variable", "EXAMPLE_LISTEN_PORT": "2"], file: file)
        #expect(settings.faults.isEmpty)
        #expect(settings.required(name) == "flag")
        #expect(settings.origin(of: "name") == .flag("name"))
        #expect(settings.required(port) == 2)
        #expect(settings.required(colour) == .green)
        #expect(settings.required(bold) == false)
        #expect(settings.origin(of: "bold") == .builtIn)
    }

    @Test func `takes a flag with a blank or an equals sign`() throws {
        #expect(try resolve(["--name", "x"]).required(name) == "x")
        #expect(try resolve(["--name=x=y"]).required(name) == "x=y")
        #expect(try resolve(["--name=--x"]).required(name) == "--x")
    }

    @Test func `reads the file of the variable when no flag names one`() throws {
        try withFile(Array("name = there".utf8)) { path throws in
            #expect(try resolve([], ["EXAMPLE_CONFIG": path]).required(name) == "there")
            #expect(try resolve([], ["EXAMPLE_CONFIG": path], file: "name = here").required(name) == "here")
        }
    }

    @Test func `names a settings file that is not there`() throws {
        let missing = try faults(["--config", "/nonexistent/a.conf"])
        #expect(missing.count == 1)
        #expect(missing.first?.hasPrefix("cannot read /nonexistent/a.conf: No such file or directory") == true)
    }

    @Test func `takes an empty variable for none where there is no default`() throws {
        #expect(try resolve([], ["EXAMPLE_TOKEN": ""], file: "token = x")[token] == nil)
        #expect(try faults([], ["EXAMPLE_NAME": ""]).count == 1)
    }

    @Test func `lets a flag go around a wrong line of the file`() throws {
        let settings = try resolve(["--listen.port", "5"], file: "listen.port = many")
        #expect(settings.faults.isEmpty)
        #expect(settings.required(port) == 5)
    }

    @Test func `reads lists`() throws {
        #expect(try resolve(["--paths", "a, b,c"])[paths] == ["a", "b", "c"])
        #expect(try faults(["--paths", "a,,b"]).count == 1)
    }
}

@Suite struct `A wrong setting` {
    @Test(arguments: [
        ("--listen.port=0", "flag --listen.port: listen.port: \"0\" must be a whole number from 1 to 65535"),
        ("--listen.port=1.5", "flag --listen.port: listen.port: \"1.5\" must be a whole number from 1 to 65535"),
        (
            "--listen.port=99999999999999999999",
            "flag --listen.port: listen.port: \"99999999999999999999\" must be a whole number from 1 to 65535"
        ),
        ("--colour=pink", "flag --colour: colour: \"pink\" must be red, green or blue"),
        ("--bold=yes", "flag --bold: bold: \"yes\" must be true or false"),
        ("--colour=a\nb", "flag --colour: colour: \"a\\u{a}b\" must be red, green or blue"),
        ("--nmae=x", "no setting or option is called \"--nmae\"; the nearest is --name"),
        ("--hepl=x", "no setting or option is called \"--hepl\"; the nearest is --help"),
        (
            "--bootstrap.servers=x",
            "no setting or option is called \"--bootstrap.servers\"; the nearest is --kafka.bootstrap.servers"
        ),
        ("--yes=x", "no setting or option is called \"--yes\"; example settings lists them"),
        ("--listen.port=+5", "flag --listen.port: listen.port: \"+5\" must be a whole number from 1 to 65535"),
        ("--paths=file:a", "flag --paths: paths: the value is a path itself; write it without \"file:\""),
        ("--help=x", "--help takes no value"),
        ("-x", "\"-x\" is not an option; options begin with two dashes"),
        ("--name", "--name needs a value: write --name=VALUE, without blanks around \"=\""),
        ("--config", "--config needs a value: write --config=VALUE, without blanks around \"=\""),
        ("--format", "--format needs a value: write --format=VALUE, without blanks around \"=\""),
        ("--nam", "no setting or option is called \"--nam\"; the nearest is --name"),
        (
            "--config=a\nb",
            "cannot read a\\u{a}b: No such file or directory; name an existing settings file with --config"
        ),
        ("--kafka.=x", "flag --kafka.: kafka. is not a property; write it like kafka.bootstrap.servers"),
        (
            "--kafka.consumer=x",
            "flag --kafka.consumer: kafka.consumer is not a property; write it like kafka.bootstrap.servers"
        ),
    ])
    func `is told in one line that says what to do`(_ argument: String, _ message: String) throws {
        #expect(try faults([argument]) == [message])
    }

    @Test func `is told with its variable or its line`() throws {
        #expect(
            try faults([], ["EXAMPLE_COLUOR": "red"])
                == ["variable EXAMPLE_COLUOR: no setting has this name; the nearest is EXAMPLE_COLOUR"])
        let settings = try resolve(file: "\nlisten.prot = 1\nbold = perhaps")
        #expect(settings.faults.count == 2)
        #expect(
            settings.faults[0].description.hasSuffix(
                ".conf:2: no setting is called listen.prot; the nearest is listen.port"))
        #expect(settings.faults[1].description.hasSuffix(".conf:3: bold: \"perhaps\" must be true or false"))
    }

    @Test(arguments: [
        ("EXAMPLE_LISTEN_PORT=1", "no setting is called EXAMPLE_LISTEN_PORT; the nearest is listen.port"),
        (
            "KAFKA.bootstrap.servers=x",
            "no setting is called KAFKA.bootstrap.servers; the nearest is kafka.bootstrap.servers"
        ),
        ("Colour=red", "no setting is called Colour; the nearest is colour"),
        ("SOMETHING_ELSE=1", "no setting is called SOMETHING_ELSE; example settings lists them"),
        (
            "Hunter2secret==",
            "the key of this line (not shown) does not look like a setting; example settings lists them"
        ),
        (
            "listen.port = 12 # twelve",
            "must be a whole number from 1 to 65535; \"#\" begins a comment only at the start of a line"
        ),
        ("colour = \"red\"", "must be red, green or blue; quotes are part of the value"),
    ])
    func `of the file is led to the setting that is meant`(_ line: String, _ words: String) throws {
        let told = try resolve(file: line).faults.map(\.description)
        #expect(told.count == 1)
        #expect(told.first?.hasSuffix(words) == true, "\(told)")
    }

    @Test func `never hides another`() throws {
        let all = try resolve(["--colour=pink", "--nmae=x"], ["EXAMPLE_LISTEN_PORT": "0"], file: "what\nbold = 1")
        #expect(all.faults.count == 5)
        #expect(all.required(colour) == .red, "a default stands in for what was refused")
    }

    @Test func `is a flag given twice`() throws {
        #expect(try faults(["--name", "a", "--name=b"]) == ["--name is given twice; keep one of the two"])
    }

    @Test func `is a value that is not UTF-8`() throws {
        #expect(
            try faults([], ["EXAMPLE_NAME": "a\u{fffd}"]) == ["variable EXAMPLE_NAME: name: the value is not UTF-8"])
    }
}

@Suite struct `A value that begins with file` {
    @Test(arguments: [("secret\n", "secret"), ("secret\r\n", "secret"), ("secret\n\n", "secret\n"), ("a\nb", "a\nb")])
    func `is read from there without its last newline`(_ content: String, _ value: String) throws {
        try withFile(Array(content.utf8)) { path throws in
            #expect(try resolve(["--token=file:\(path)"])[token] == value)
            #expect(try resolve(["--kafka.sasl.password=file:\(path)"]).passThrough.first?.value == value)
        }
    }

    @Test func `is refused when the file is missing, empty, binary, a directory or too large`() throws {
        #expect(
            try faults(["--token=file:/nonexistent"]) == [
                "flag --token: token: cannot read /nonexistent: No such file or directory"
            ])
        #expect(
            try faults(["--token=file:/tmp"]) == ["flag --token: token: cannot read /tmp: it is not a regular file"])
        for content in [[], Array("\n".utf8), [0x61, 0], [0xff], Array(repeating: 0x61, count: 1 << 20) + [0x61]] {
            try withFile(content) { path throws in #expect(try faults(["--token=file:\(path)"]).count == 1) }
        }
    }

    @Test func `is not opened for a command that does not read the setting`() throws {
        #expect(try resolve(["--token=file:/nonexistent"], command: "other").faults.isEmpty)
        #expect(try resolve(["--token=file:/nonexistent"], command: nil).faults.count == 1)
    }

    @Test func `is not opened when a flag takes its place`() throws {
        let settings = try resolve(["--token=x"], file: "token = file:/nonexistent")
        #expect(settings.faults.isEmpty)
        #expect(settings[token] == "x")
    }
}

@Suite struct `Properties passed through` {
    @Test func `keep name and value as they are, with the scope apart`() throws {
        let settings = try resolve(
            ["--kafka.consumer.fetch.min.bytes=1"], ["EXAMPLE_KAFKA_BOOTSTRAP_SERVERS": "a:1,b:2"],
            file: "kafka.producer.linger.ms = 5\nkafka.admin.x = y")
        #expect(settings.faults.isEmpty)
        let shown = settings.passThrough.map { "\($0.scope ?? "-") \($0.name) \($0.value)" }
        #expect(
            shown == [
                "producer linger.ms 5", "admin x y", "- bootstrap.servers a:1,b:2", "consumer fetch.min.bytes 1",
            ])
    }

    @Test func `come in order of rising precedence, one of each name`() throws {
        let settings = try resolve(
            ["--kafka.a=flag"], ["EXAMPLE_KAFKA_B": "variable"], file: "kafka.a = file\nkafka.b = file\nkafka.c = file")
        #expect(settings.passThrough.map { "\($0.name)=\($0.value)" } == ["c=file", "b=variable", "a=flag"])
    }
}

@Suite struct `Variables of a Kubernetes service` {
    @Test(arguments: [
        ("EXAMPLE_SERVICE_HOST", "10.0.0.1"), ("EXAMPLE_SERVICE_PORT", "8443"), ("EXAMPLE_SERVICE_PORT_HTTPS", "8443"),
        ("EXAMPLE_PORT", "tcp://10.0.0.1:8443"), ("EXAMPLE_PORT", "tcp://[fd00::1]:8443"),
        ("EXAMPLE_PORT_8443_TCP", "tcp://10.0.0.1:8443"), ("EXAMPLE_PORT_8443_TCP_ADDR", "10.0.0.1"),
        ("EXAMPLE_PORT_8443_TCP_PORT", "8443"), ("EXAMPLE_PORT_53_UDP_PROTO", "udp"),
        ("EXAMPLE_INGEST_SERVICE_HOST", "10.0.0.1"), ("EXAMPLE_INGEST_SERVICE_PORT_HTTP_ADMIN", "1"),
        ("EXAMPLE_KAFKA_PORT_9092_TCP_ADDR", "10.0.0.1"), ("EXAMPLE_LISTEN_PORT", "tcp://10.0.0.1:80"),
    ])
    func `are no settings`(_ name: String, _ value: String) throws {
        let settings = ResolvedSettings(
            schema, arguments: ParsedArguments([], options: []), environment: [(name, value)], command: "run")
        #expect(settings.faults.isEmpty)
        #expect(settings.passThrough.isEmpty)
        #expect(settings.required(port) == 80)
    }

    @Test(arguments: [("EXAMPLE_PORT", "8443"), ("EXAMPLE_PORT_X_TCP", "a"), ("EXAMPLE_HOST", "a")])
    func `do not cover for a misspelt setting`(_ name: String, _ value: String) throws {
        let settings = ResolvedSettings(
            schema, arguments: ParsedArguments([], options: []), environment: [(name, value)], command: "run")
        #expect(settings.faults.count == 1)
    }
}

@Suite struct `A settings file that nobody has named` {
    /// Anybody who may write into a directory could have left it there.
    @Test func `makes nothing run`() throws {
        let path = NSTemporaryDirectory() + "settings-\(UUID().uuidString).conf"
        try "name = n\nkafka.consumer.run.cmd = touch /x\nkafka.other = 1".write(
            toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let schema = SettingsSchema(
            definitions: [name.definition],
            family: PassThroughFamily(
                name: "kafka", scopes: ["consumer"], examples: [], runningCode: ["run.cmd"]),
            variablePrefix: "EXAMPLE_", defaultFile: path, help: "example settings")
        func resolved(_ arguments: [String]) -> ResolvedSettings {
            ResolvedSettings(
                schema, arguments: ParsedArguments(arguments, options: []), environment: [], command: "run")
        }
        let found = resolved([])
        #expect(found.passThrough.map(\.name) == ["other"])
        #expect(
            found.faults.map(\.description) == [
                "\(path):2: kafka.consumer.run.cmd makes this program run or load something: it is accepted only in a file that is "
                    + "named with --config, or as a flag or variable"
            ])
        for arguments in [["--config", path], ["--kafka.consumer.run.cmd=x"]] {
            let named = resolved(arguments)
            #expect(named.faults.isEmpty && named.passThrough.contains { $0.name == "run.cmd" }, "\(arguments)")
        }
    }
}

@Suite struct `A secret` {
    @Test func `that other users can read is told`() throws {
        #expect(try resolve(["--pin=1234"]).warnings.first?.hasPrefix("pin is set by a flag: every user") == true)
        #expect(
            try resolve(["--pin=1", "--kafka.sasl.password=a"]).warnings.first?.hasPrefix(
                "kafka.sasl.password is set")
                == true)
        #expect(try resolve([], ["EXAMPLE_PIN": "1234"]).warnings.isEmpty)
        try withFile(Array("1234".utf8)) { path throws in
            chmod(path, 0o640)
            #expect(try resolve(["--pin=file:\(path)", "--token", path]).warnings.isEmpty)
            chmod(path, 0o644)
            #expect(
                try resolve(["--pin=file:\(path)"]).warnings == [
                    "pin: every user of this machine can read \(path): chmod o-r \(path)"
                ])
            // If others can change a value, nobody knows who wrote it.
            chmod(path, 0o666)
            #expect(try resolve(["--pin=file:\(path)"]).faults.first?.description.contains("chmod go-w") == true)
        }
    }

    private static let secret = "hunter2secret"

    @Test(arguments: [
        ["--pin=hunter2secret"], ["--pin", "=", "hunter2secret"], ["--kafka.sasl.password", "=", "hunter2secret"],
        ["--kafka.ssl.key.pem=hunter2secret", "--pin=1"], ["--token=hunter2secret", "--name="],
    ])
    func `is in no message and no table`(_ arguments: [String]) throws {
        let settings = try resolve(arguments)
        let all = settings.faults.map(\.description) + settings.rows.map { "\($0.key) \($0.value) \($0.origin)" }
        #expect(!all.joined(separator: "\n").contains(Self.secret))
    }

    @Test(arguments: ["hunter2secret", "HUNTER2SECRET hunter2secret==", "Hunter2secret=="])
    func `is in no message when it strays into a line of the file`(_ line: String) throws {
        let settings = try resolve(file: line)
        #expect(settings.faults.count == 1)
        #expect(!settings.faults[0].description.lowercased().contains(Self.secret))
    }

    @Test func `read from a file is in no message although its setting is none`() throws {
        try withFile(Array(Self.secret.utf8)) { path throws in
            let messages = try faults(["--listen.port=file:\(path)"])
            #expect(messages == ["flag --listen.port: listen.port: its value must be a whole number from 1 to 65535"])
        }
    }

    @Test(arguments: [
        "sasl.password", "ssl.key.password", "ssl.key.pem", "ssl.keystore.password", "sasl.oauthbearer.client.secret",
        "sasl.jaas.config", "sasl.oauthbearer.config", "ssl.certificate.pem",
    ])
    func `is known by the name of its property`(_ name: String) throws {
        let settings = try resolve(["--kafka.producer.\(name)=\(Self.secret)"])
        #expect(settings.passThrough.first?.value == Self.secret)
        #expect(settings.rows.last?.value == "(not shown)")
    }

    @Test func `is whatever was read from a file`() throws {
        try withFile(Array(Self.secret.utf8)) { path throws in
            let rows = try resolve(["--kafka.sasl.username=file:\(path)", "--name=file:\(path)"]).rows
            #expect(rows.count { $0.value == "(not shown)" } == 2)
            #expect(!rows.contains { $0.value.contains(Self.secret) })
        }
    }

    @Test func `is shown as set or not`() throws {
        #expect(try resolve(["--token=x"]).rows.first { $0.key == "token" }?.value == "(not shown)")
        #expect(try resolve().rows.first { $0.key == "token" }?.value == "(none)")
    }
}
