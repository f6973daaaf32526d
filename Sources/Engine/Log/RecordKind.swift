// Decides by a record's headers whether a build can read it.

/// Records of one type, the value of the header `type`, and the greatest version of their schema that a build reads.
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
        /// There is no header `type`.
        case type
        /// The header `schema` has no schema of this type.
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
        guard let type = record.header(HeaderName.type) else { return .strange(.type) }
        guard isType(type) else { return .unknownType }
        switch schema(of: record) {
        case .known: return .known
        case .newer(let version): return .newer(words(of: version, upgrade: upgrade))
        case .strange: return .strange(.schema)
        }
    }

    /// Whether the header `type` has this type.
    public func isType(_ header: Span<UInt8>) -> Bool {
        guard header.count == type.count else { return false }
        for index in header.indices where header[index] != type[index] { return false }
        return true
    }

    /// `<type>/<version>`. A record without the header has the first version.
    public func schema(of record: borrowing RecordView) -> Schema {
        guard let schema = record.header(HeaderName.schema) else { return .known }
        guard let version = number(in: schema) else { return .strange }
        return version <= self.version ? .known : .newer(version)
    }

    public func words(of version: Int, upgrade: String) -> String {
        "a record has the schema \(String(decoding: type, as: UTF8.self))/\(version), and this build reads up to "
            + "\(self.version): upgrade \(upgrade)"
    }

    private func number(in schema: Span<UInt8>) -> Int? {
        // At most nine digits, so that every number fits.
        guard schema.count > type.count + 1, schema.count <= type.count + 10, schema[type.count] == UInt8(ascii: "/")
        else { return nil }
        var number = 0
        for index in schema.indices {
            let byte = schema[index]
            if index < type.count {
                if byte != type[index] { return nil }
            } else if index > type.count {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
                number = number * 10 + Int(byte - UInt8(ascii: "0"))
            }
        }
        return number > 0 ? number : nil
    }
}
