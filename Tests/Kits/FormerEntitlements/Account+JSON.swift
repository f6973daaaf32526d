// An account as JSON for its readers.

public import JSON
internal import Notices

extension Account {
    /// Writes an object with what the account may use, by name.
    public func writeGrants(to writer: inout JSONWriter) {
        writer.object { names in
            for grant in grants {
                names.name(text: "\(grant.name)")
                names.object { answer in
                    answer.member("access", grant.access)
                    answer.member("accessUntil", orNull: grant.accessUntil)
                    answer.member("originalTransactionId", utf8: grant.originalTransactionId.bytes)
                    answer.member("bundleId", utf8: grant.bundleId?.bytes)
                    answer.member("environment", utf8: grant.environment?.bytes)
                }
            }
        }
    }

    /// Writes an array with the advice for the customer.
    public func writeAdvice(to writer: inout JSONWriter) {
        writer.array { list in
            for advice in advice {
                list.object { item in
                    item.member("kind", advice.kind.rawValue)
                    item.member("originalTransactionId", utf8: advice.originalTransactionId.bytes)
                    item.member("url", advice.kind.url)
                }
            }
        }
    }
}
