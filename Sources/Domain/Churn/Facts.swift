// Everything that notifications have said about one subscription or one-time purchase.

internal import SubscriptionHistory

/// A set of notifications that only grows, up to a limit. The order and repetition of notifications do not change the
/// set.
///
/// The facts of one subscription after the other use the same memory. Texts stay where they lie, in the kept bytes and
/// in the notification.
struct Facts: ~Copyable {
    /// The number of notifications kept; the newest stay.
    static let limit = 4_096

    var texts = KnownTexts()
    var parts = Scratch<PartNumbers>()
    /// Sorted by date and id; without those that are not read.
    var notices = Scratch<Notice>(capacity: 64)
    /// The notices before these: see `readUnread`.
    var unread = UnreadNotices()
    /// The key of the newest notification that was forgotten because of its weight. Notifications that are not newer
    /// are rejected: otherwise it would depend on the order whether a light old one stays where a heavy newer one was
    /// dropped.
    var forgotten: Notice.Key?
    /// What is new since the facts were read, or since `setNewsCounted`.
    private(set) var news = News.none
    /// The kept bytes that all this was read from: see `Facts+Coding.swift`.
    var kept = KeptFacts()
    private var seen = Scratch<Bool>()
    /// While the others are read.
    var newest = Scratch<Notice>()

    /// Of a life with fewer notices all are read.
    static let long = 32
    /// So many of a long life are read at first. They are enough for its tail, unless much has happened lately.
    static let readAtOnce = 12

    /// The number of notices.
    var count: Int { unread.count + notices.count }

    enum News: Equatable {
        case none
        /// One notice more, at this place of `notices`; all others are as they were.
        case one(Int)
        case other
    }

    /// Nothing is known.
    mutating func removeAll() {
        news = .none
        texts.removeAll()
        parts.removeAll()
        notices.removeAll()
        forgotten = nil
        unread.removeAll()
        kept = KeptFacts()
    }

    /// - Returns: whether it was new.
    mutating func merge(_ news: ChurnNews) -> Bool {
        let key = news.notice.key
        if let forgotten, !(forgotten < key) { return false }
        // It belongs among those that are not read.
        if let last = unread.last, !(last < key) { readUnread() }
        let place = notices.values.firstPlace { !($0.key < key) }
        if place < notices.count, notices[place].key == key {
            // Two notifications with one key and different content are rare. Any choice that does not depend on the
            // order is right.
            guard notices[place].precedence < news.notice.precedence else { return false }
            notices[place] = adopted(news)
            self.news = .other
        } else {
            // It is older than all others, and the limit is reached.
            if place == 0, unread.count == 0, count == Self.limit { return false }
            notices.insert(adopted(news), at: place)
            self.news = self.news == .none ? .one(place) : .other
            if count > Self.limit {
                readUnread()
                notices.removeFirst(1)
                self.news = .other
            }
        }
        forgetHeavy()
        return true
    }

    mutating func setNewsCounted() { news = .none }

    /// Other notices have come before it.
    mutating func moveNews(by places: Int) {
        if case .one(let place) = news { news = .one(place + places) }
    }

    // MARK: Limits

    /// The limit in bytes, over distinct texts; those of an Apple subscription take some hundred bytes. It keeps the
    /// state of one subscription below the size of one Kafka record, whatever texts arrive.
    static let limitWeight = 200_000

    /// Keeps the newest notices that fit within the limit together. Later merges only add weight, so a dropped notice
    /// could never have come back.
    private mutating func forgetHeavy() {
        // A text has at most 256 bytes, so fewer cannot exceed the limit.
        guard texts.count >= 256 || count >= 512 else { return }
        readUnread()
        seen.fill(false, count: texts.count + 1)
        var weight = 0
        for place in notices.indices.reversed() {
            weight += weighed(notices[place])
            guard weight > Self.limitWeight else { continue }
            forgotten = notices[place].key
            notices.removeFirst(place + 1)
            news = .other
            return
        }
    }

    /// The bytes of its texts that were not seen yet.
    private mutating func weighed(_ notice: Notice) -> Int {
        var weight = 0
        if let transaction = notice.transaction {
            let parts = parts[Int(transaction.parts)]
            weight += weighed(parts.bundle) + weighed(parts.product) + weighed(parts.plan)
            weight += weighed(parts.storefront) + weighed(parts.currency)
            if case .text(let id) = transaction.id { weight += weighed(textNumber(id)) }
        }
        if let info = notice.info {
            weight += weighed(info.product) + weighed(info.plan)
            weight += weighed(info.commitmentProduct) + weighed(info.commitmentPlan)
        }
        return weight
    }

    private mutating func weighed(_ text: TextNumber) -> Int {
        if seen[Int(text.value)] { return 0 }
        seen[Int(text.value)] = true
        return texts.byteCount(text)
    }

    /// True if most of the texts may belong to notices that are no longer kept.
    var isWasteful: Bool {
        var bytes = 0
        for value in 0..<texts.count { bytes += texts.byteCount(textNumber(UInt32(value + 1))) }
        return bytes > 2 * Self.limitWeight
    }

    /// Removes from the tables what no notice uses.
    /// - Parameter places: the new places of the parts, by their old places; -1: they are gone.
    mutating func compact(_ places: inout Scratch<Int32>) {
        readUnread()
        var oldTexts = KnownTexts()
        var oldParts = Scratch<PartNumbers>()
        swap(&texts, &oldTexts)
        swap(&parts, &oldParts)
        places.fill(-1, count: oldParts.count)
        for place in notices.indices {
            if let transaction = notices[place].transaction {
                let numbers = oldParts[Int(transaction.parts)]
                let moved = self.place(
                    of: PartNumbers(
                        bundle: texts.number(oldTexts[numbers.bundle]),
                        product: texts.number(oldTexts[numbers.product]),
                        plan: texts.number(oldTexts[numbers.plan]),
                        storefront: texts.number(oldTexts[numbers.storefront]),
                        currency: texts.number(oldTexts[numbers.currency]), isCommitment: numbers.isCommitment))
                places[Int(transaction.parts)] = moved
                notices[place].transaction?.parts = moved
                if case .text(let id) = transaction.id, let number = oldTexts.number(UInt64(id)) {
                    notices[place].transaction?.id = .text(texts.number(oldTexts[number]).value)
                }
            }
            if let info = notices[place].info {
                notices[place].info?.product = texts.number(oldTexts[info.product])
                notices[place].info?.plan = texts.number(oldTexts[info.plan])
                notices[place].info?.commitmentProduct = texts.number(oldTexts[info.commitmentProduct])
                notices[place].info?.commitmentPlan = texts.number(oldTexts[info.commitmentPlan])
            }
            notices[place].kept = Notice.Kept()
        }
        // No kept byte has the new numbers.
        kept = KeptFacts()
    }

    // MARK: Tables

    private func textNumber(_ value: UInt32) -> TextNumber { texts.number(UInt64(value)) ?? .none }

    /// The id where it lies.
    func purchaseId(_ id: RowId) -> PurchaseId {
        switch id {
        case .number(let number): PurchaseId(number: number)
        case .text(let number): PurchaseId(texts[textNumber(number)] ?? TextPlace(""))
        }
    }

    /// The same notice with the numbers of these tables.
    private mutating func adopted(_ news: ChurnNews) -> Notice {
        var notice = news.notice
        if notice.transaction != nil {
            notice.transaction?.parts = place(
                of: PartNumbers(
                    bundle: texts.number(news.bundle), product: texts.number(news.product),
                    plan: texts.number(news.plan), storefront: texts.number(news.storefront),
                    currency: texts.number(news.currency), isCommitment: news.isCommitment))
            if let id = news.id { notice.transaction?.id = .text(texts.number(id).value) }
        }
        if notice.info != nil {
            notice.info?.product = texts.number(news.nextProduct)
            notice.info?.plan = texts.number(news.nextPlan)
            notice.info?.commitmentProduct = texts.number(news.nextCommitmentProduct)
            notice.info?.commitmentPlan = texts.number(news.nextCommitmentPlan)
        }
        return notice
    }

    /// New numbers are added.
    private mutating func place(of numbers: PartNumbers) -> Int32 {
        for place in parts.indices where parts[place] == numbers { return Int32(place) }
        parts.append(numbers)
        return Int32(parts.count - 1)
    }
}
