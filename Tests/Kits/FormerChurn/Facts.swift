// Everything that notifications have said about one subscription or one-time purchase.

internal import Notices

/// A set of notifications that only grows, up to a limit. The order and repetition of notifications do not change the
/// set.
struct Facts: Sendable {
    /// The number of notifications kept; the newest stay.
    static let limit = 4_096

    private(set) var texts: [Text] = []
    private(set) var parts: [PartNumbers] = []
    /// Sorted by date and id.
    private(set) var notices: [Notice] = []
    /// The key of the newest notification that was forgotten because of its weight. Notifications that are not newer
    /// are rejected: otherwise it would depend on the order whether a light old one stays where a heavy newer one was
    /// dropped.
    private(set) var forgotten: Notice.Key?
    /// Set for the facts of one notification: its transaction lacks what is needed to use it. This is counted, because
    /// Apple does not send such transactions.
    private(set) var hasUnusableTransaction = false

    init() {}

    /// For the facts of one notification: it says something about a subscription.
    var saysAnything: Bool { notices.contains { $0.transaction != nil || $0.info != nil } }
    var count: Int { notices.count }

    /// nil if the facts are invalid: not sorted, or too many.
    init?(texts: [Text], parts: [PartNumbers], notices: [Notice], forgotten: Notice.Key?) {
        guard notices.count <= Self.limit else { return nil }
        for place in notices.indices.dropFirst() where !(notices[place - 1].key < notices[place].key) { return nil }
        self.texts = texts
        self.parts = parts
        self.notices = notices
        self.forgotten = forgotten
    }

    /// What one notification says.
    init(_ notice: Notice, texts: [Text], parts: [PartNumbers], hasUnusableTransaction: Bool) {
        self.hasUnusableTransaction = hasUnusableTransaction
        self.texts = texts
        self.parts = parts
        notices = [notice]
    }

    /// - Returns: whether anything was new.
    @discardableResult
    mutating func merge(_ other: Facts) -> Bool {
        var isNew = false
        for notice in other.notices {
            if let forgotten, !(forgotten < notice.key) { continue }
            let place = place(of: notice.key)
            if place < notices.count, notices[place].key == notice.key {
                // Two notifications with one key and different content are rare. Any choice that does not depend on the
                // order is right.
                guard notices[place].precedence.lexicographicallyPrecedes(notice.precedence) else { continue }
                notices[place] = adopted(notice, of: other)
                isNew = true
                continue
            }
            // It is older than all others, and the limit is reached.
            if place == 0, notices.count == Self.limit { continue }
            notices.insert(adopted(notice, of: other), at: place)
            if notices.count > Self.limit { notices.removeFirst() }
            isNew = true
        }
        if isNew { forgetHeavy() }
        return isNew
    }

    // MARK: Limits

    /// The limit in bytes, over distinct texts; those of an Apple subscription take some hundred bytes. It keeps the
    /// state of one subscription below the size of one Kafka record, whatever texts arrive.
    static let limitWeight = 200_000

    /// Keeps the newest notices that fit within the limit together. Later merges only add weight, so a dropped notice
    /// could never have come back.
    private mutating func forgetHeavy() {
        // A text has at most 256 bytes, so fewer cannot exceed the limit.
        guard texts.count >= 256 || notices.count >= 512 else { return }
        var seen: Set<TextNumber> = []
        var weight = 0
        for place in notices.indices.reversed() {
            weight += self.weight(of: notices[place], beside: &seen)
            guard weight > Self.limitWeight else { continue }
            forgotten = notices[place].key
            notices.removeFirst(place + 1)
            return
        }
    }

    private func weight(of notice: Notice, beside seen: inout Set<TextNumber>) -> Int {
        var weight = 0
        var numbers: [TextNumber] = []
        if let transaction = notice.transaction {
            let parts = parts[transaction.parts]
            numbers += [parts.bundle, parts.product, parts.plan, parts.storefront, parts.currency]
            if case .text(let id) = transaction.id { numbers.append(id) }
        }
        if let info = notice.info { numbers += [info.product, info.plan, info.commitmentProduct, info.commitmentPlan] }
        for number in numbers where seen.insert(number).inserted { weight += text(number)?.bytes.count ?? 0 }
        return weight
    }

    /// True if most of the texts may belong to notices that are no longer kept.
    var isWasteful: Bool { texts.reduce(0) { $0 + $1.bytes.count } > 2 * Self.limitWeight }

    /// Removes from the tables what no notice uses.
    /// - Returns: the new places of the parts, by their old places.
    mutating func compact() -> [Int: Int] {
        let old = self
        (texts, parts) = ([], [])
        var places: [Int: Int] = [:]
        for place in notices.indices {
            notices[place] = adopted(old.notices[place], of: old)
            if let before = old.notices[place].transaction?.parts { places[before] = notices[place].transaction?.parts }
        }
        return places
    }

    private func place(of key: Notice.Key) -> Int {
        var low = 0
        var high = notices.count
        // New notices usually are the newest.
        if high == 0 || notices[high - 1].key < key { return high }
        while low < high {
            let middle = (low + high) / 2
            if notices[middle].key < key { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: Tables

    func text(_ number: TextNumber) -> Text? { number == 0 ? nil : texts[Int(number) - 1] }

    func transactionId(_ id: RowId) -> TransactionId {
        switch id {
        case .number(let number): TransactionId(number: number)
        case .text(let number): TransactionId(text(number) ?? "")
        }
    }

    func cellParts(_ place: Int) -> CellParts {
        let numbers = parts[place]
        return CellParts(
            bundleId: text(numbers.bundle) ?? "", productId: text(numbers.product) ?? "",
            billingPlan: text(numbers.plan) ?? "", storefront: text(numbers.storefront) ?? "",
            currency: text(numbers.currency) ?? "")
    }

    /// The same notice with the numbers of these tables.
    private mutating func adopted(_ notice: Notice, of other: Facts) -> Notice {
        var notice = notice
        if let transaction = notice.transaction {
            let theirs = other.parts[transaction.parts]
            let ours = PartNumbers(
                bundle: number(other.text(theirs.bundle)), product: number(other.text(theirs.product)),
                plan: number(other.text(theirs.plan)), storefront: number(other.text(theirs.storefront)),
                currency: number(other.text(theirs.currency)), isCommitment: theirs.isCommitment)
            if let place = parts.firstIndex(of: ours) {
                notice.transaction?.parts = place
            } else {
                parts.append(ours)
                notice.transaction?.parts = parts.count - 1
            }
            if case .text(let id) = transaction.id { notice.transaction?.id = .text(number(other.text(id))) }
        }
        if let info = notice.info {
            notice.info?.product = number(other.text(info.product))
            notice.info?.plan = number(other.text(info.plan))
            notice.info?.commitmentProduct = number(other.text(info.commitmentProduct))
            notice.info?.commitmentPlan = number(other.text(info.commitmentPlan))
        }
        return notice
    }

    mutating func addParts(_ numbers: PartNumbers) -> Int {
        parts.append(numbers)
        return parts.count - 1
    }

    /// The number of a text in these tables. A new text is added.
    mutating func number(_ text: Text?) -> TextNumber {
        guard let text else { return 0 }
        if let place = texts.firstIndex(of: text) { return TextNumber(place + 1) }
        texts.append(text)
        return TextNumber(texts.count)
    }
}
