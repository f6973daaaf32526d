// Why a document was refused.

public struct JSONFault: Error, Equatable, CustomStringConvertible {
    /// A closed set: these become metric labels.
    public enum Cause: String, Sendable, CaseIterable {
        case empty, notUTF8, unclosedString, controlCharacter, badString, badNumber, badWord, badStructure, incomplete
        case trailing, tooDeep, tooLarge, repeatedName, noMemory
    }

    public let cause: Cause
    /// A byte at or shortly after which the document is wrong; nil if the reader cannot say.
    public let offset: Int?
    /// Line and column of that byte.
    public let place: JSONPlace?
    /// Counted from 1.
    public var line: Int? { place?.line }
    /// What the cause does not say, such as the repeated name or the limit.
    public let detail: String?

    init(_ cause: Cause, offset: Int? = nil, in document: Span<UInt8> = Span(), detail: String? = nil) {
        self.cause = cause
        self.offset = offset
        self.detail = detail
        place =
            switch offset {
            case .some(let offset): JSONPlace(of: offset, in: document)
            case nil: nil
            }
    }

    public var description: String {
        let place = if let line, let offset { "line \(line) (byte \(offset)): " } else { "" }
        return place + problem
    }

    /// The description without the place.
    public var problem: String { words + (detail.map { " (\($0))" } ?? "") }

    private var words: String {
        switch cause {
        case .empty: "there is no JSON value"
        case .notUTF8: "the text is not UTF-8"
        case .unclosedString: "a string is not closed by a quotation mark"
        case .controlCharacter: "a string contains a control character; write it as an escape such as \\n"
        case .badString: "a string contains an escape that JSON does not have"
        case .badNumber: "this is not a valid JSON number"
        case .badWord: "expected a value; text must be in quotation marks"
        case .badStructure: "a comma, a colon, a bracket or a name is missing or not allowed here"
        case .incomplete: "a bracket is not closed"
        case .trailing: "something follows after the end of the value"
        case .tooDeep: "brackets are nested too deeply"
        case .tooLarge: "the document is too large"
        case .repeatedName: "an object has two members with the same name"
        case .noMemory: "there is not enough memory to read the document"
        }
    }
}
