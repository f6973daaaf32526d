// A command is a value in a table: help, the check of its arguments and the call all come from it.

public import Configuration
public import Platform
public import Settings

public struct Command: Sendable {
    public enum Action: Sendable {
        /// Needs no settings, and works when they are wrong.
        case plain(@Sendable (Invocation) -> ExitCode)
        /// The same, for what runs until a signal comes: it takes signals itself (`Service.run`), and drains.
        case plainService(@Sendable (Invocation) -> ExitCode)
        /// Runs only with a configuration that is right; what is wrong has been told otherwise.
        case configured(@Sendable (Invocation, Configuration) -> ExitCode)
        /// That, and it runs until a signal comes.
        case service(@Sendable (Invocation, Configuration) -> ExitCode)
    }

    public let name: CommandName
    /// One line for the list of commands.
    public let summary: String
    /// How help writes what follows the name, such as "[FILE]".
    public let operands: String
    public let operandCount: ClosedRange<Int>
    public let options: [CommandOption]
    /// More than the summary says: what is read, what the exit codes mean.
    public let details: String
    /// With this option a tool runs until a signal comes, and takes signals itself.
    let serviceOption: String?
    /// With this word a service does one thing, as a tool, and ends.
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

    /// Nobody else may then take signals: the process has one of each.
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
    /// The table the command was found in.
    public let program: Program
    /// Reads every source of settings once more; files may have changed since.
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

    /// The same call, which tells people what it has to say in another way.
    func telling(_ message: @escaping @Sendable (String) -> Void) -> Invocation {
        var call = self
        call.output = Output(data: output.data, message: message)
        return call
    }

    public func has(_ option: String) -> Bool { options[option] != nil }
    public func option(_ name: String) -> String? { options[name] }

    /// The value of an option that takes one of a few words, the first being the default. nil: another was given, and the
    /// user has been told.
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
