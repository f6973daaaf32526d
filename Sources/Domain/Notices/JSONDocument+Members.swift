// Members of payloads as the domains read them. A member that is absent, null or of another kind counts as not given.

public import JSON
public import Records

extension JSONDocument {
    public borrowing func integer(_ name: StaticString, of object: Value) -> Int64? {
        member(name, of: object).flatMap { integer($0.value) }
    }

    public borrowing func bool(_ name: StaticString, of object: Value) -> Bool? {
        member(name, of: object).flatMap { bool($0.value) }
    }

    public borrowing func text(_ name: StaticString, of object: Value) -> Text? {
        member(name, of: object).flatMap { textBytes($0.value) }.map { Text(Array($0)) }
    }

    /// The bytes of a text where they lie, until the next document is read. A text longer than any of Apple's counts as
    /// not given: so what is stored and published of a subscription stays small.
    public borrowing func textBytes(_ value: Value) -> UnsafeBufferPointer<UInt8>? {
        guard let bytes = unsafeString(value), bytes.count <= Text.limitBytes else { return nil }
        return bytes
    }

    public borrowing func object(_ name: StaticString, of object: Value) -> Value? {
        guard let value = member(name, of: object)?.value, kind(of: value) == .object else { return nil }
        // Encrypted with a key that may be deleted: the same as absent.
        return member(MemberName.sealed.text, of: value) == nil ? value : nil
    }
}

extension JSONDocument {
    @inlinable public borrowing func integer(_ name: MemberName, of object: Value) -> Int64? {
        integer(name.text, of: object)
    }
    @inlinable public borrowing func bool(_ name: MemberName, of object: Value) -> Bool? { bool(name.text, of: object) }
    @inlinable public borrowing func text(_ name: MemberName, of object: Value) -> Text? { text(name.text, of: object) }
    @inlinable public borrowing func object(_ name: MemberName, of value: Value) -> Value? {
        object(name.text, of: value)
    }
}
