// One moment of the demo, as the view shows it.

/// Everything that the view shows: the screen is a function of it.
struct DemoScene: Sendable {
    /// Time since the start, by the real clock.
    var running: Duration = .zero
    /// Time of the store, in milliseconds since 1970.
    var storeTime: Int64 = 0
    var pace = DemoWorld.Pace.running(daysPerSecond: 0)
    /// Where the log is: "in memory", or the broker and the prefix.
    var log = "in memory"
    var posts = DemoBoard.Posts()
    var postsPerSecond = 0.0
    /// Where ingest listens; nil: it does not listen yet.
    var ingest: String?
    /// Records that the entitlements worker has not processed; nil: the number is not known yet.
    var lag: Int?
    var churnLag: Int?
    var consumptionLag: Int?
    /// Milliseconds from the first post of a notification until the view has read the committed output for it.
    var latency: (half: Double, nearlyAll: Double)?
    /// Time from the start until the first entitlement could be read.
    var firstOutput: Duration?
    var subscriptions = 0
    var withAccess = 0
    var byState: [String: Int] = [:]
    var byKind: [String: Int] = [:]
    /// Newest last.
    var events: [DemoOutputs.Event] = []
    /// nil: nothing has been counted yet.
    var figures: DemoFigures?
    /// nil: nobody has asked for a refund yet.
    var refunds: RefundFigures?
    var unreadable = 0
    /// Requests that the API has answered with 200, as shell commands; empty: the API is not ready yet.
    var questions: [String] = []
    /// Errors and warnings; the newest is last.
    var troubles: [String] = []
}

extension DemoScene {
    /// The states of the contract, in the order in which a subscription may pass through them.
    private static let order = ["active", "grace", "billing_retry", "expired", "superseded", "revoked", "owned"]

    /// States that occur, and their counts. Unknown states come last.
    var states: [(name: String, count: Int)] {
        let known = Self.order + byState.keys.filter { !Self.order.contains($0) }.sorted()
        return known.compactMap { name in byState[name].flatMap { $0 > 0 ? (name, $0) : nil } }
    }

    /// The most frequent first.
    var kinds: [(name: String, count: Int)] {
        byKind.map { (name: $0.key, count: $0.value) }.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
    }
}

/// `1,234,567`
func grouped(_ number: Int) -> String {
    var digits = Array(String(number.magnitude))
    var place = digits.count - 3
    while place > 0 {
        digits.insert(",", at: place)
        place -= 3
    }
    return (number < 0 ? "-" : "") + String(digits)
}

/// One decimal below ten, otherwise none.
func rounded(_ number: Double) -> String {
    guard number.isFinite else { return "?" }
    let clamped = min(max(number, 0), 1e12)
    if clamped >= 9.95 { return grouped(Int(clamped.rounded())) }
    let tenths = Int((clamped * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
}

/// `1:02:03`, or `02:03` within the first hour.
func clockText(_ duration: Duration) -> String {
    let seconds = Int(max(.zero, duration).components.seconds)
    func two(_ number: Int) -> String { (number < 10 ? "0" : "") + String(number) }
    let rest = "\(two(seconds / 60 % 60)):\(two(seconds % 60))"
    return seconds < 3600 ? rest : "\(seconds / 3600):\(rest)"
}
