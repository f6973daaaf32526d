// A command is a value in a table. Help, the check of arguments and the call use this value.

package import Configuration
package import Platform
package import Settings

package struct Command: Sendable {
    package enum Action: Sendable {
        /// Needs no settings, and works even if they are wrong.
        case plain(@Sendable (Invocation) -> ExitCode)
        /// The same, but it runs until a signal arrives: it handles signals itself (`Service.run`), and drains.
        case plainService(@Sendable (Invocation) -> ExitCode)
        /// Runs only with a valid configuration; otherwise its faults were printed.
        case configured(@Sendable (Invocation, Configuration) -> ExitCode)
        /// The same, but it runs until a signal arrives.
        case service(@Sendable (Invocation, Configuration) -> ExitCode)
    }

    let name: CommandName
    /// One line for the list of commands.
    let summary: String
    /// The operands after the name, as help shows them, such as "[FILE]".
    let operands: String
    let operandCount: ClosedRange<Int>
    let options: [CommandOption]
    /// What the summary does not say: what the command reads, what its exit codes mean.
    let details: String
    /// With this option a tool runs until a signal arrives, and handles signals itself.
    let serviceOption: String?
    /// With this operand a service does one thing, as a tool, and ends.
    let toolOperand: String?
    let action: Action

    package init(
        _ name: CommandName, _ summary: String, operands: String = "", operandCount: ClosedRange<Int> = 0...0,
        options: [CommandOption] = [], details: String = "", serviceOption: String? = nil, toolOperand: String? = nil,
        action: Action
    ) {
        self.serviceOption = serviceOption
        self.toolOperand = toolOperand
        self.name = name
        self.summary = summary
        self.operands = operands
        self.operandCount = operandCount
        self.options = options + [CommandOption("help", effect: "Shows this text.")]
        self.details = details
        self.action = action
    }

    var readsSettings: Bool {
        switch action {
        case .plain, .plainService: false
        case .configured, .service: true
        }
    }

    /// Only one part of a process may handle signals.
    var takesSignals: Bool {
        switch action {
        case .plainService, .service: true
        case .plain, .configured: false
        }
    }
}

/// One call of a command.
package struct Invocation: Sendable {
    package let operands: [String]
    package private(set) var output: Output
    /// The table that the command belongs to.
    let program: Program
    /// Reads every source of settings again; files may have changed.
    package let reload: @Sendable () throws -> Configuration
    private let command: CommandName
    private let options: [String: String]

    init(
        _ arguments: ParsedArguments, of command: CommandName, output: Output, program: Program,
        reload: @escaping @Sendable () throws -> Configuration = { throw ConfigurationFaults(faults: []) }
    ) {
        self.command = command
        self.reload = reload
        operands = arguments.operands
        options = arguments.options
        self.output = output
        self.program = program
    }

    /// The same call, with another output for messages.
    func telling(_ message: @escaping @Sendable (String) -> Void) -> Invocation {
        var call = self
        call.output = Output(data: output.data, message: message)
        return call
    }

    package func has(_ option: String) -> Bool { options[option] != nil }
    package func option(_ name: String) -> String? { options[name] }

    /// The value of an option that accepts a few words; the first is the default. nil: another word was given, and a message was
    /// printed.
    package func choice(_ name: String, of words: [String]) -> String? {
        guard let word = option(name) else { return words.first }
        guard words.contains(word) else {
            output.message(
                "perennial \(command.rawValue): --\(name) must be \(words.joined(separator: " or ")), not \(quoted(word))"
            )
            return nil
        }
        return word
    }
}
