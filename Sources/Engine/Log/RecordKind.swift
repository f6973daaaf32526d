// Decides by a record's headers whether a build can read it.

/// Records of one type, and the greatest version of their schema that a build reads. The header `schema` names both.
/// Builds before 0.2 also wrote the type into a header `type` of its own; such records are read as they always were.
public struct RecordKind: Sendable {
    public enum Meaning: Equatable, Sendable {
        case known
        /// A later build wrote the record: no later record may be read before this build is upgraded. The text says for
        /// people what and why.
        case newer(String)
        /// This build does not know the record's type.
        case unknownType
        /// The headers are invalid.
        case strange(Flaw)
    }

    public enum Flaw: Sendable {
        /// No header names the type.
        case type
        /// The header `schema` is malformed, or has another type than the header `type`.
        case schema
    }

    /// The meaning of the header `schema` of a record of this type.
    public enum Schema: Equatable, Sendable {
        case known
        case newer(Int)
        case strange
    }

    public let type: [UInt8]
    public let version: Int

    public init(_ type: String, version: Int) {
        self.type = Array(type.utf8)
        self.version = version
    }

    /// - Parameter upgrade: what must be upgraded if a later build wrote the record.
    public func meaning(of record: borrowing RecordView, upgrade: String) -> Meaning {
        if let type = record.header(HeaderName.type) {
            guard isType(type) else { return .unknownType }
        } else {
            guard let schema = record.header(HeaderName.schema) else { return .strange(.type) }
            guard let parts = SchemaParts(schema) else { return .strange(.schema) }
            guard isType(schema.extracting(..<parts.typeCount)) else { return .unknownType }
        }
        switch schema(of: record) {
        case .known: return .known
        case .newer(let version): return .newer(words(of: version, upgrade: upgrade))
        case .strange: return .strange(.schema)
        }
    }

    /// Whether this is the name of the type.
    public func isType(_ name: Span<UInt8>) -> Bool {
        guard name.count == type.count else { return false }
        for index in name.indices where name[index] != type[index] { return false }
        return true
    }

    /// A record without the header `schema` has the first version.
    public func schema(of record: borrowing RecordView) -> Schema {
        guard let schema = record.header(HeaderName.schema) else { return .known }
        guard let parts = SchemaParts(schema), isType(schema.extracting(..<parts.typeCount)) else { return .strange }
        return parts.version <= version ? .known : .newer(parts.version)
    }

    public func words(of version: Int, upgrade: String) -> String {
        "a record has the schema \(String(decoding: type, as: UTF8.self))/\(version), and this build reads up to "
            + "\(self.version): upgrade \(upgrade)"
    }
}

/// A value of the header `schema`: `<type>/<version>`.
public struct SchemaParts {
    /// Number of bytes of the type, at the start.
    public let typeCount: Int
    /// From 1.
    public let version: Int

    /// The program writes no longer name of a type.
    private static let typeLimit = 64
    /// So that every number fits.
    private static let digitLimit = 9

    /// nil: it is malformed.
    public init?(_ schema: Span<UInt8>) {
        var typeCount = 0
        while typeCount < schema.count, schema[typeCount] != UInt8(ascii: "/") { typeCount += 1 }
        let digits = schema.count - typeCount - 1
        guard (1...Self.typeLimit).contains(typeCount), (1...Self.digitLimit).contains(digits) else { return nil }
        var version = 0
        for index in typeCount + 1..<schema.count {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(schema[index]) else { return nil }
            version = version * 10 + Int(schema[index] - UInt8(ascii: "0"))
        }
        guard version > 0 else { return nil }
        self.typeCount = typeCount
        self.version = version
    }
}
