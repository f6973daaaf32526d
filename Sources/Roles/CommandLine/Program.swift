// From arguments to an exit code.

package import Configuration
package import Platform
package import Settings
import Telemetry

package struct Program: Sendable {
    /// In the order in which help lists them.
    let commands: [Command]
    /// One example of each command, which help shows.
    let examples: [CommandName: String]
    /// What is wrong with a property of librdkafka.
    private let judge: @Sendable (PassThroughEntry) -> [PropertyComplaint]

    package init(
        commands: [Command], examples: [CommandName: String] = [:],
        judge: @escaping @Sendable (PassThroughEntry) -> [PropertyComplaint]
    ) {
        self.commands = commands
        self.examples = examples
        self.judge = judge
    }

    func command(_ name: String) -> Command? { commands.first { $0.name.rawValue == name } }

    /// Whether these arguments call a command that handles SIGINT and SIGTERM itself. All others are tools.
    package func takesSignals(_ arguments: [String]) -> Bool {
        guard let command = arguments.first.flatMap({ command($0) }) else { return false }
        if let word = command.toolOperand, arguments.dropFirst().contains(word) { return false }
        guard let option = command.serviceOption else { return command.takesSignals }
        return arguments.dropFirst().contains { $0 == "--\(option)" || $0.hasPrefix("--\(option)=") }
    }

    /// `arguments` does not contain the name of the program.
    package func run(_ arguments: [String], environment: [(name: String, value: String)], output: Output) -> ExitCode {
        guard let first = arguments.first else {
            output.message(overview)
            return .wrongUsage
        }
        let rest = Array(arguments.dropFirst())
        switch first {
        case "--help", "-h": return run([CommandName.help.rawValue] + rest, environment: environment, output: output)
        case "--version": return run([CommandName.version.rawValue] + rest, environment: environment, output: output)
        default: break
        }
        guard let command = command(first) else {
            output.message(explanation(ofMissing: first))
            return .wrongUsage
        }
        let parsed = ParsedArguments(rest, options: command.options)
        if parsed.has("help") {
            output.data(help(for: command))
            return .done
        }
        return call(command, parsed, environment: environment, output: output)
    }

    private func call(
        _ command: Command, _ parsed: ParsedArguments, environment: [(name: String, value: String)], output: Output
    ) -> ExitCode {
        var faults: [SettingFault] = []
        // After an invalid argument, a surplus operand is no second mistake: `-topic.prefix x` is one mistake.
        if parsed.faults.isEmpty, let fault = operandFault(command, parsed) { faults.append(fault) }
        let role = command.name == .check ? parsed.operands.first.flatMap(CommandName.role(named:)) : nil
        let judge = judge
        let load: @Sendable () throws(ConfigurationFaults) -> Configuration = { () throws(ConfigurationFaults) in
            try Configuration.load(
                command.name, of: role, arguments: parsed, options: command.options, environment: environment,
                judge: judge)
        }
        let invocation = Invocation(parsed, of: command.name, output: output, program: self, reload: load)
        switch command.action {
        case .plain(let run), .plainService(let run):
            faults += parsed.faults + parsed.unknownOptions(known: command.options)
            if faults.isEmpty { return run(invocation) }
        case .configured(let run):
            do throws(ConfigurationFaults) {
                let configuration = try load()
                if faults.isEmpty {
                    warn(command, configuration) {
                        output.message("perennial \(command.name.rawValue): warning: \($0)")
                    }
                    return run(invocation, configuration)
                }
            } catch {
                faults += error.faults
            }
        case .service(let run):
            do throws(ConfigurationFaults) {
                let configuration = try load()
                if faults.isEmpty {
                    let settings = configuration.service
                    let logger = Logger(level: settings.logLevel, format: settings.logFormat)
                    warn(command, configuration) { logger.warning($0) }
                    // A service that logs JSON prints nothing else.
                    let isTool = command.toolOperand.map { parsed.operands.first == $0 } ?? false
                    let isJSON = settings.logFormat == .json && !isTool
                    return run(isJSON ? invocation.telling { logger.error($0) } : invocation, configuration)
                }
            } catch {
                faults += error.faults
            }
        }
        for fault in faults { output.message("perennial \(command.name.rawValue): \(fault)") }
        output.message("perennial help \(command.name.rawValue) shows its options")
        return .wrongUsage
    }

    /// Not for `check`, which prints warnings as findings.
    private func warn(_ command: Command, _ configuration: Configuration, _ tell: (String) -> Void) {
        guard command.name != .check else { return }
        for warning in configuration.warnings { tell(warning) }
    }

    private func operandFault(_ command: Command, _ parsed: ParsedArguments) -> SettingFault? {
        guard !command.operandCount.contains(parsed.operands.count) else { return nil }
        guard let surplus = parsed.operands.dropFirst(command.operandCount.upperBound).first else {
            return SettingFault("usage: \(usage(of: command))")
        }
        // `--content A B`: the second date becomes an operand.
        let list = command.options.first { parsed.has($0.name) && $0.valueName?.hasSuffix("[,...]") == true }
        let hint =
            list.map { "separate the values of --\($0.name) with commas, no spaces: \($0.valueName ?? ""); " } ?? ""
        return SettingFault("\(quoted(surplus)) is one argument too many; \(hint)usage: \(usage(of: command))")
    }

    private func explanation(ofMissing name: String) -> String {
        if CommandName(rawValue: name) != nil {
            return "perennial \(name): version \(PerennialVersion.text) does not have this command yet"
        }
        if name.hasPrefix("-") {
            return "perennial: the command must come first: perennial COMMAND [--option value]; see perennial help"
        }
        let unknown = "perennial: there is no command \(quoted(name)); "
        let present = commands.map(\.name.rawValue)
        // Existing commands come first, so that the nearest one is an existing one if two are equally near.
        guard let nearest = nearestName(to: name, among: present + CommandName.allCases.map(\.rawValue)) else {
            return unknown + "perennial help lists the commands"
        }
        let absence = present.contains(nearest) ? "" : ", which version \(PerennialVersion.text) does not have yet"
        return unknown + "the nearest is \(nearest)\(absence). perennial help lists the commands"
    }
}
