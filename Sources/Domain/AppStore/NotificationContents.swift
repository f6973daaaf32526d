// Which of its four forms a notification has.

import JSON
import Records

struct NotificationContents {
    enum Kind: CaseIterable { case data, summary, externalPurchaseToken, appData }

    /// The first content that is present.
    let kind: Kind
    /// More than one can be present only if Apple changes its rules; then it is unclear which one counts.
    let count: Int
    let subject: Subject

    /// nil if none of the four objects is present.
    init?(_ document: borrowing JSONDocument) {
        var found: (kind: Kind, object: JSONDocument.Value)?
        var count = 0
        for kind in Kind.allCases {
            guard let object = document.value(kind.member, of: document.root), document.kind(of: object) == .object
            else { continue }
            if found == nil { found = (kind, object) }
            count += 1
        }
        guard let found else { return nil }
        self.kind = found.kind
        self.count = count
        subject =
            found.kind == .externalPurchaseToken
            ? Subject(ofToken: found.object, in: document)
            : Subject(document, found.object, environment: .environment)
    }
}

extension NotificationContents.Kind {
    var member: MemberName {
        switch self {
        case .data: .data
        case .summary: .summary
        case .externalPurchaseToken: .externalPurchaseToken
        case .appData: .appData
        }
    }
}
