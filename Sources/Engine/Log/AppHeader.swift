// The program that wrote a record, and the rules that it followed.

/// The header `app`: `<program>/<version>`. Outputs of workers have `+<rules>` behind it, as version numbers carry build
/// data: the hash of the settings that determine the contents. Builds before 0.2 wrote the rules into a header of their
/// own.
public enum AppHeader {
    private static let plus = UInt8(ascii: "+")

    public static func text(_ app: String, rules: String?) -> String { rules.map { "\(app)+\($0)" } ?? app }

    /// Number of bytes of program and version, at the start of the header.
    static func programCount(of header: Span<UInt8>) -> Int {
        var count = 0
        while count < header.count, header[count] != plus { count += 1 }
        return count
    }

    /// The headers of a record as this build writes them: an older record's rules move into `app`.
    public static func joined(_ headers: [RecordHeader]) -> [RecordHeader] {
        guard let rules = headers.last(where: { $0.isNamed(HeaderName.rules) }) else { return headers }
        return headers.compactMap { header in
            if header.isNamed(HeaderName.rules) { return nil }
            guard header.isNamed(HeaderName.app), let app = header.value, !app.contains(plus) else { return header }
            return RecordHeader(header.name, app + [plus] + (rules.value ?? []))
        }
    }
}

extension RecordView {
    /// The program and its version, without rules. nil: the record does not say.
    public var program: Span<UInt8>? {
        @_lifetime(copy self)
        get {
            guard let app = header(HeaderName.app) else { return nil }
            return app.extracting(..<AppHeader.programCount(of: app))
        }
    }

    /// Hash of the settings that determined the contents. nil: the record does not say.
    public var rules: Span<UInt8>? {
        @_lifetime(copy self)
        get {
            if let rules = header(HeaderName.rules) { return rules }
            guard let app = header(HeaderName.app) else { return nil }
            let count = AppHeader.programCount(of: app)
            return count < app.count ? app.extracting((count + 1)...) : nil
        }
    }
}
