@testable import Crypto

/// A DER value with its parts, so that it can be written again in another form.
indirect enum DERTree {
    case primitive(tag: UInt8, [UInt8])
    case constructed(tag: UInt8, [DERTree])

    static func read(_ bytes: ArraySlice<UInt8>) -> (tree: DERTree, rest: ArraySlice<UInt8>) {
        let tag = bytes[bytes.startIndex]
        var rest = bytes.dropFirst()
        var count = Int(rest.removeFirst())
        if count >= 0x80 {
            let more = count & 0x7f
            count = rest.prefix(more).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(more)
        }
        var content = rest.prefix(count)
        guard tag & 0x20 != 0 else { return (.primitive(tag: tag, Array(content)), rest.dropFirst(count)) }
        var parts: [DERTree] = []
        while !content.isEmpty {
            let (part, more) = read(content)
            parts.append(part)
            content = more
        }
        return (.constructed(tag: tag, parts), rest.dropFirst(count))
    }

    /// How the value after `place` others is written.
    enum Form { case usual, longLength, indefinite }

    func written(_ form: Form, at place: Int) -> [UInt8] {
        var left = place
        return written(form, &left)
    }

    private func written(_ form: Form, _ left: inout Int) -> [UInt8] {
        let isHere = left == 0
        left -= 1
        let (tag, content): (UInt8, [UInt8]) =
            switch self {
            case .primitive(let tag, let content): (tag, content)
            case .constructed(let tag, let parts): (tag, parts.flatMap { $0.written(form, &left) })
            }
        guard isHere else { return DER.value(tag, content) }
        switch form {
        case .usual: return DER.value(tag, content)
        case .longLength:
            return [tag, 0x84] + (0..<4).map { UInt8(truncatingIfNeeded: content.count >> (24 - 8 * $0)) } + content
        case .indefinite: return tag & 0x20 == 0 ? DER.value(tag, content) : [tag, 0x80] + content + [0, 0]
        }
    }

    var count: Int {
        switch self {
        case .primitive: 1
        case .constructed(_, let parts): 1 + parts.reduce(0) { $0 + $1.count }
        }
    }

    /// Replaces every primitive value equal to `old` by this content.
    func replacing(_ old: [UInt8], tag newTag: UInt8, _ new: [UInt8]) -> DERTree {
        switch self {
        case .primitive(_, old): .primitive(tag: newTag, new)
        case .primitive: self
        case .constructed(let tag, let parts):
            .constructed(tag: tag, parts.map { $0.replacing(old, tag: newTag, new) })
        }
    }
}
