// A JSON document as a tree of Swift values, for small and medium documents: settings, statistics.

/// A number that is not a whole number of 64 bits keeps its text: reading rounds nothing.
public enum JSONValue: Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(String)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}

extension JSONValue {
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    public var object: JSONObject? { if case .object(let value) = self { value } else { nil } }

    /// The member of an object; nil also if this is not an object.
    public subscript(_ name: String) -> JSONValue? { object?[name] }

    /// The kind of the value in words for a message: "a string".
    public var kindInWords: String {
        switch self {
        case .null: "null"
        case .bool: "true or false"
        case .integer: "a whole number"
        case .number: "a number with a fraction, or beyond 64 bits"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

/// Members in the order of the document.
public struct JSONObject: Sendable {
    public struct Member: Sendable {
        public let name: String
        public let value: JSONValue

        public init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    public let members: [Member]

    public init(_ members: [Member]) { self.members = members }

    /// Compares bytes: `String` equality would take two spellings of "é" for one name. If a member occurs twice the
    /// last one counts, as in other readers. Time grows with the number of members.
    public subscript(_ name: String) -> JSONValue? {
        members.last { $0.name.utf8.elementsEqual(name.utf8) }?.value
    }
}

/// Compares bytes, and members in order: two documents are equal if they would be written the same.
extension JSONValue: Equatable {
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let a), .bool(let b)): a == b
        case (.integer(let a), .integer(let b)): a == b
        case (.number(let a), .number(let b)), (.string(let a), .string(let b)): a.utf8.elementsEqual(b.utf8)
        case (.array(let a), .array(let b)): a == b
        case (.object(let a), .object(let b)): a == b
        default: false
        }
    }
}

extension JSONObject: Equatable {
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        left.members.elementsEqual(right.members) { $0.name.utf8.elementsEqual($1.name.utf8) && $0.value == $1.value }
    }
}
