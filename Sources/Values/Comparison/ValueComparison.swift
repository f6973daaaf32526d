// Compares two JSON objects member by member. Pure: two values in, a verdict out.

internal import JSON

/// Which members are ignored, and how the others are compared.
public struct ComparisonRules: Sendable {
    /// Members of the top-level object to ignore; members of nested objects are always compared.
    public var leftOut: [StaticString]
    /// Names of objects of numbers in which a missing member counts as zero.
    public var sums: [String]

    public init(leavingOut leftOut: [StaticString], sums: [String] = []) {
        self.leftOut = leftOut
        self.sums = sums
    }
}

/// Compares one pair after the other and reuses its buffers. Single-threaded.
public struct ValueComparison: ~Copyable {
    /// Twice the default record limit of Kafka. A larger value is compared byte by byte.
    public static let limitBytes = 2 << 20
    /// A value that differs everywhere would otherwise fill the memory with differences.
    public static let limitDifferences = 1000

    private let rules: ComparisonRules
    private var left: JSONDocument
    private var right: JSONDocument
    private var reader: JSONReader

    public init(_ rules: ComparisonRules) {
        var limits = JSONLimits()
        limits.bytes = Self.limitBytes
        self.rules = rules
        left = JSONDocument(limits: limits)
        right = JSONDocument(limits: limits)
        reader = JSONReader(limits: limits)
    }

    /// The order of members, the notation of numbers, and the difference between null and absent do not matter. Values
    /// that are not JSON objects are equal only if their bytes are equal.
    public mutating func compare(here: [UInt8], there: [UInt8]) -> Verdict {
        if here == there { return .same }
        guard let areAlike = walk(here.span, there.span) else {
            return .different([Difference("", here: here, there: there)])
        }
        if areAlike { return .same }
        guard let (left, right) = trees(here, there) else {
            return .different([Difference("", here: here, there: there)])
        }
        var found = Findings()
        found.compare(members(left), members(right), at: "", sums: rules.sums)
        return found.all.isEmpty ? .same : .different(found.all)
    }

    private mutating func trees(_ here: [UInt8], _ there: [UInt8]) -> (JSONObject, JSONObject)? {
        guard let left = (try? reader.read(here))?.object, let right = (try? reader.read(there))?.object else {
            return nil
        }
        return (left, right)
    }

    private func members(_ object: JSONObject) -> JSONObject {
        JSONObject(
            object.members.filter { member in
                !rules.leftOut.contains { name in
                    UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
                        .elementsEqual(member.name.utf8)
                }
            })
    }

    /// The fast path: most values have the same members with the same bytes in the same order. nil: one of them is not
    /// an object.
    private mutating func walk(_ here: Span<UInt8>, _ there: Span<UInt8>) -> Bool? {
        do throws(JSONFault) {
            try left.read(here)
            try right.read(there)
        } catch {
            return nil
        }
        guard left.kind(of: left.root) == .object, right.kind(of: right.root) == .object else { return nil }
        var (mine, others) = (left.firstMember(of: left.root), right.firstMember(of: right.root))
        while true {
            while let member = mine, rules.leftOut.contains(where: { left.name(of: member, is: $0) }) {
                mine = left.member(after: member)
            }
            while let member = others, rules.leftOut.contains(where: { right.name(of: member, is: $0) }) {
                others = right.member(after: member)
            }
            guard let first = mine, let second = others else { return mine == nil && others == nil }
            guard equal(left.name(of: first), right.name(of: second)),
                equal(left.raw(first.value), right.raw(second.value))
            else { return false }
            mine = left.member(after: first)
            others = right.member(after: second)
        }
    }
}

private func equal(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    for index in left.indices where left[index] != right[index] { return false }
    return true
}

/// The differences found so far.
private struct Findings {
    private(set) var all: [Difference] = []

    private mutating func add(_ path: String, _ here: JSONValue?, _ there: JSONValue?) {
        guard all.count < ValueComparison.limitDifferences else { return }
        all.append(Difference(path, here: here.map(text), there: there.map(text)))
    }

    private func text(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(value)
        return writer.bytes
    }

    /// - Parameter sums: objects in which a missing member counts as zero.
    mutating func compare(_ here: JSONObject, _ there: JSONObject, at path: String, sums: [String] = []) {
        // Compared as bytes: string equality treats different Unicode spellings of a letter as equal.
        var seen: Set<[UInt8]> = []
        let theirs = Dictionary(there.members.map { (Array($0.name.utf8), $0.value) }) { first, _ in first }
        for member in here.members {
            let name = Array(member.name.utf8)
            seen.insert(name)
            let place = path.isEmpty ? member.name : "\(path).\(member.name)"
            if path.isEmpty, sums.contains(member.name) {
                compareSums(member.value, theirs[name], at: place)
            } else {
                compare(present(member.value), present(theirs[name]), at: place)
            }
        }
        for member in there.members where !seen.contains(Array(member.name.utf8)) {
            let place = path.isEmpty ? member.name : "\(path).\(member.name)"
            if path.isEmpty, sums.contains(member.name) {
                compareSums(nil, member.value, at: place)
            } else {
                compare(nil, present(member.value), at: place)
            }
        }
    }

    private func present(_ value: JSONValue?) -> JSONValue? {
        if case .null = value { return nil }
        return value
    }

    private mutating func compareSums(_ here: JSONValue?, _ there: JSONValue?, at path: String) {
        guard let left = (present(here) ?? .object(JSONObject([]))).object,
            let right = (present(there) ?? .object(JSONObject([]))).object
        else { return compare(present(here), present(there), at: path) }
        func filled(_ object: JSONObject, as other: JSONObject) -> JSONObject {
            let missing = other.members.filter { object[$0.name] == nil }
            return JSONObject(object.members + missing.map { JSONObject.Member(name: $0.name, value: .integer(0)) })
        }
        compare(filled(left, as: right), filled(right, as: left), at: path)
    }

    private mutating func compare(_ here: JSONValue?, _ there: JSONValue?, at path: String) {
        switch (here, there) {
        case (nil, nil): return
        case (.object(let left), .object(let right)): compare(left, right, at: path)
        case (.array(let left), .array(let right)):
            for index in 0..<max(left.count, right.count) {
                compare(
                    index < left.count ? left[index] : nil, index < right.count ? right[index] : nil,
                    at: "\(path)[\(index)]")
            }
        case (.some(let left), .some(let right)) where isSame(left, right): return
        default: add(path, here, there)
        }
    }

    private func isSame(_ left: JSONValue, _ right: JSONValue) -> Bool {
        if left == right { return true }
        guard let left = number(left), let right = number(right) else { return false }
        return left == right
    }

    private func number(_ value: JSONValue) -> DecimalText? {
        switch value {
        case .integer(let value): DecimalText(String(value))
        case .number(let text): DecimalText(text)
        default: nil
        }
    }
}
