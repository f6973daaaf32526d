// Members of payloads as domains read them. What is absent, null or of another kind is taken as not said.

public import JSON

extension JSONDocument {
    public borrowing func integer(_ name: StaticString, of object: Value) -> Int64? {
        member(name, of: object).flatMap { integer($0.value) }
    }

    public borrowing func bool(_ name: StaticString, of object: Value) -> Bool? {
        member(name, of: object).flatMap { bool($0.value) }
    }

    /// One that is longer than any of Apple's is taken as not said: what is kept and told of a subscription stays small.
    public borrowing func text(_ name: StaticString, of object: Value) -> Text? {
        guard let value = member(name, of: object)?.value, let bytes = string(value), bytes.count <= Text.limitBytes
        else { return nil }
        return bytes.withUnsafeBufferPointer { Text(Array($0)) }
    }

    public borrowing func object(_ name: StaticString, of object: Value) -> Value? {
        guard let value = member(name, of: object)?.value, kind(of: value) == .object else { return nil }
        // Encrypted, with a key that may be gone: as good as absent.
        return member("sealed", of: value) == nil ? value : nil
    }
}
