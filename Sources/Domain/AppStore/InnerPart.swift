// A payload that is signed separately and is contained as text in a notification.

import Contract
import JSON
import Records

struct InnerPart {
    /// Where Apple puts such a part.
    struct Place {
        let content: NotificationContents.Kind
        let member: MemberName
        let kind: PayloadKind

        var path: String { "\(content.member.text).\(member.text)" }

        static let all = [
            Place(content: .data, member: .signedTransactionInfo, kind: .transaction),
            Place(content: .data, member: .signedRenewalInfo, kind: .renewal),
            Place(content: .appData, member: .signedAppTransactionInfo, kind: .appTransaction),
        ]
    }

    let place: Place
    /// Range of the text in the outer payload, quotation marks included; and range of its whole member.
    let valueRange: Range<Int>
    let memberRange: Range<Int>
    /// The JSON as it was signed.
    let bytes: [UInt8]
    let signedDate: Int64?
    let originalTransactionId: String?
    let appTransactionId: String?
    let isAutoRenewable: Bool

    var kind: PayloadKind { place.kind }
    var path: String { place.path }

    init(
        _ place: Place, _ outer: borrowing JSONDocument, _ member: JSONDocument.Member, _ payload: AuthenticPayload,
        _ document: borrowing JSONDocument
    ) {
        self.place = place
        valueRange = outer.range(of: member.value)
        memberRange = outer.range(of: member)
        bytes = payload.bytes
        signedDate = payload.date
        originalTransactionId = document.text(.originalTransactionId, of: document.root)
        appTransactionId = document.text(.appTransactionId, of: document.root)
        isAutoRenewable =
            place.kind == .renewal
            || document.has(MemberName.type.text, of: document.root, equalTo: AppleWord.autoRenewable)
    }

    /// The outer signature already prevents that genuine parts of different notifications are combined. This check is a
    /// second safeguard.
    static func compare(
        _ place: Place, _ document: borrowing JSONDocument, with subject: Subject, _ outer: borrowing JSONDocument
    ) throws(Rejection) {
        let environment: MemberName = place.kind == .appTransaction ? .receiptType : .environment
        guard Subject.World(document, document.value(environment, of: document.root)) == subject.world else {
            throw Rejection(
                .inconsistent, "\(place.path): \(environment.text) differs from the notification's environment")
        }
        if place.kind == .renewal { return }
        guard
            let bundleId = document.value(.bundleId, of: document.root).flatMap({ document.bytes(of: $0) }),
            let outerBundleId = subject.bundleId.flatMap({ outer.bytes(of: $0) }), bundleId == outerBundleId
        else {
            throw Rejection(.inconsistent, "\(place.path): bundleId differs from the notification's")
        }
        guard place.kind == .appTransaction, subject.environment == .production else { return }
        let appAppleId = document.integer(.appAppleId, of: document.root)
        guard appAppleId == subject.appAppleId.flatMap({ outer.integer($0) }) else {
            throw Rejection(.inconsistent, "\(place.path): appAppleId differs from the notification's")
        }
    }
}

/// Details of an accepted notification that differ from Apple's documentation. The words are metric labels: a closed
/// set.
enum Flags {
    /// Apple documents no bound. The parts of genuine notifications were signed together, once 28 ms apart.
    static let limitApart: Int64 = 60 * 1000

    static let names = [
        "unknown_type", "unknown_subtype", "no_transaction", "no_renewal_info", "no_status", "dates_apart",
    ]

    static func all(
        of parts: [InnerPart], type: String, subtype: String?, hasStatus: Bool, _ signedDate: Int64
    ) -> [String] {
        var flags: [String] = []
        if !NotificationNames.types.contains(type) { flags.append("unknown_type") }
        if let subtype, !NotificationNames.subtypes.contains(subtype) { flags.append("unknown_subtype") }
        if parts.contains(where: \.isAutoRenewable) {
            if !parts.contains(where: { $0.kind == .transaction }) { flags.append("no_transaction") }
            if !parts.contains(where: { $0.kind == .renewal }) { flags.append("no_renewal_info") }
            if !hasStatus { flags.append("no_status") }
        }
        let isApart = parts.contains { part in
            guard part.kind != .appTransaction, let date = part.signedDate else { return false }
            let (distance, overflows) = date.subtractingReportingOverflow(signedDate)
            return overflows || distance.magnitude > limitApart
        }
        if isApart { flags.append("dates_apart") }
        return flags
    }
}
