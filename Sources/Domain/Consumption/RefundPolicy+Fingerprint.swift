// The content of a policy as bytes that do not depend on how its file is written.

internal import JSON
internal import Notices
internal import Records

extension RefundPolicy {
    /// Covers version, defaults, rules in their order, and shadow. White space, the order of members and the order of
    /// texts in a list do not change it.
    public var fingerprint: [UInt8] {
        var told = JSONWriter()
        tell(&told)
        return told.bytes
    }

    private func tell(_ told: inout JSONWriter) {
        told.object { told in
            told.member("version", version)
            told.member("deliveryStatus", deliveryStatus?.rawValue)
            told.member("sampleContentProvided", orNull: sampleContentProvided)
            told.name("rules")
            told.array { told in for rule in rules { rule.tell(&told) } }
            told.name("shadow")
            if let shadow { shadow.tell(&told) } else { told.null() }
        }
    }
}

extension RefundPolicy.Rule {
    fileprivate func tell(_ told: inout JSONWriter) {
        told.object { told in
            told.member("name", name)
            told.name("when")
            told.object { told in for test in tests { test.tell(&told) } }
            switch answer {
            case .withhold: told.member("withhold", true)
            case .prefer(let preference): told.member("refundPreference", preference?.rawValue)
            }
        }
    }
}

extension RefundPolicy.Test {
    fileprivate func tell(_ told: inout JSONWriter) {
        switch self {
        case .text(let fact, let texts):
            told.name(text: fact.rawValue)
            told.array { told in for text in texts { told.string(utf8: text.bytes) } }
        case .number(let fact, let range):
            told.name(text: fact.rawValue)
            told.object { told in
                told.member("from", orNull: range.from)
                told.member("to", orNull: range.to)
            }
        }
    }
}
