// A command is a value in a table. Help, the check of arguments and the call use this value.

public import Configuration
public import Platform
public import Settings

public struct Command: Sendable {
    public enum Action: Sendable {
        /// Needs no settings, and works even if they are wrong.
        case plain(@Sendable (Invocation) -> ExitCode)
        /// The same, but it runs until a signal arrives: it handles signals itself (`Service.run`), and drains.
        case plainService(@Sendable (Invocation) -> ExitCode)
        /// Runs only with a valid configuration; otherwise its faults were printed.
        case configured(@Sendable (Invocation, Configuration) -> ExitCode)
        /// The same, but it runs until a signal arrives.
        case service(@Sendable (Invocation, Configuration) -> ExitCode)
    }

    public let name: CommandName
    /// One line for the list of commands.
    public let summary: String
    /// The operands after the name, as help shows them, such as "[FILE]".
    public let operands: String
    public let operandCount: ClosedRange<Int>
    public let options: [CommandOption]
    /// What the summary does not say: what the command reads, what its exit codes mean.
    public let details: String
    /// With this option a tool runs until a signal arrives, and handles signals itself.
    let serviceOption: String?
    /// With this operand a service does one thing, as a tool, and ends.
    let toolOperand: String?
    public let action: Action

    public init(
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
public struct Invocation: Sendable {
    public let operands: [String]
    public private(set) var output: Output
    /// The table that the command belongs to.
    public let program: Program
    /// Reads every source of settings again; files may have changed.
    let reload: @Sendable () throws -> Configuration
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

    public func has(_ option: String) -> Bool { options[option] != nil }
    public func option(_ name: String) -> String? { options[name] }

    /// The value of an option that accepts a few words; the first is the default. nil: another word was given, and a message was
    /// printed.
    public func choice(_ name: String, of words: [String]) -> String? {
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
