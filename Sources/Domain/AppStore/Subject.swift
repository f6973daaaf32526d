// The app and the environment of a payload.

internal import Contract
import JSON
import Records

/// Read before the types of the members are checked; points into the payload's document.
struct Subject {
    enum World: Equatable {
        case known(Contract.Environment)
        /// Another text, or not a text: `Xcode` and `LocalTesting`, which Apple's libraries also trust without a
        /// signature.
        case unknown
        case absent
    }

    /// The object with these members: `data` or one of the other three in a notification, otherwise the payload.
    let object: JSONDocument.Value
    let bundleId: JSONDocument.Value?
    let appAppleId: JSONDocument.Value?
    let world: World

    var environment: Contract.Environment? { if case .known(let environment) = world { environment } else { nil } }

    init(_ document: borrowing JSONDocument, _ object: JSONDocument.Value, environment member: MemberName) {
        self.object = object
        bundleId = document.value(.bundleId, of: object)
        appAppleId = document.value(.appAppleId, of: object)
        world = World(document, document.value(member, of: object))
    }

    /// Tokens of external purchases have no member for the environment; their identifiers show it.
    init(ofToken object: JSONDocument.Value, in document: borrowing JSONDocument) {
        self.object = object
        bundleId = document.value(.bundleId, of: object)
        appAppleId = document.value(.appAppleId, of: object)
        let identifier = document.value(.externalPurchaseId, of: object)
        world = .known(Self.isOfSandbox(document, identifier) ? .sandbox : .production)
    }

    private static func isOfSandbox(_ document: borrowing JSONDocument, _ identifier: JSONDocument.Value?) -> Bool {
        guard let identifier, let text = document.string(identifier) else { return false }
        return text.withUnsafeBufferPointer { $0.starts(with: "SANDBOX".utf8) }
    }
}

extension Subject.World {
    init(_ document: borrowing JSONDocument, _ value: JSONDocument.Value?) {
        guard let value else {
            self = .absent
            return
        }
        self = .unknown
        for environment in Contract.Environment.allCases where document.isText(value, environment.nameOfApple) {
            self = .known(environment)
        }
    }
}

extension JSONDocument {
    /// Compares bytes: Swift's strings are equal by Unicode's rules, identifiers are not.
    borrowing func isText(_ value: Value, _ text: String) -> Bool {
        guard let bytes = string(value) else { return false }
        return bytes.withUnsafeBufferPointer { bytes in
            bytes.count == text.utf8.count && bytes.elementsEqual(text.utf8)
        }
    }
}

extension JSONDocument {
    /// The longest that Apple allows.
    private static var limitIdentifierBytes: Int { 155 }

    /// nil: the value is not a text, or cannot be a bundle id. No other text is shown to people or used in metrics.
    borrowing func identifier(_ value: Value) -> String? {
        guard let bytes = string(value), (1...Self.limitIdentifierBytes).contains(bytes.count) else { return nil }
        let isOne = bytes.withUnsafeBufferPointer { bytes in
            bytes.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
        }
        return isOne ? text(value) : nil
    }
}

/// Checks the app and the environment of a payload.
struct Identity {
    let policy: VerificationPolicy

    /// First bundleId, then, in production, appAppleId, then environment.
    ///
    /// A missing member that is required for its kind is reported by a later step. Where it is not required no later
    /// step checks it, so its absence is reported here: such a payload may belong to another app.
    func check(_ document: borrowing JSONDocument, _ subject: Subject, _ kind: PayloadKind) throws(Rejection) {
        let isRequired = kind == .transaction || kind == .renewal
        if let apps = policy.apps, kind != .renewal {
            if let bundleId = subject.bundleId {
                try checkApp(document, bundleId, subject, apps, hasAppAppleId: kind != .transaction)
            } else if !isRequired {
                throw Rejection(.wrongApp, "there is no bundleId")
            }
        }
        switch subject.world {
        // Both are accepted; records go to the topics of their environment.
        case .known: break
        case .unknown:
            throw Rejection(.wrongEnvironment, "the environment is neither Production nor Sandbox")
        case .absent:
            if !isRequired { throw Rejection(.wrongEnvironment, "there is no environment") }
        }
    }

    private func checkApp(
        _ document: borrowing JSONDocument, _ bundleId: JSONDocument.Value, _ subject: Subject, _ apps: [App],
        hasAppAppleId: Bool
    ) throws(Rejection) {
        var found: App?
        for app in apps where document.isText(bundleId, app.bundleId) { found = app }
        guard let app = found else { throw unknownApp(document.identifier(bundleId), apps) }
        guard hasAppAppleId, subject.environment == .production else { return }
        guard let expected = app.appAppleId else {
            throw Rejection(
                .wrongApp, "the setting apps has no appAppleId for \(app.bundleId); production needs it",
                bundleId: app.bundleId)
        }
        let id = subject.appAppleId.flatMap { document.integer($0) }
        guard id == expected else {
            throw Rejection(
                .wrongApp,
                "appAppleId of \(app.bundleId) is \(id.map(String.init) ?? "no number"), and the setting apps says \(expected)",
                bundleId: app.bundleId)
        }
    }

    private func unknownApp(_ name: String?, _ apps: [App]) -> Rejection {
        let shown = apps.prefix(Self.shownApps).map(\.bundleId).joined(separator: ", ")
        let more = apps.count > Self.shownApps ? " and \(apps.count - Self.shownApps) more" : ""
        return Rejection(
            .wrongApp,
            "bundleId is \(name ?? "not a valid bundle id"), and the setting apps has \(shown)\(more)",
            bundleId: name)
    }

    private static let shownApps = 5
}
