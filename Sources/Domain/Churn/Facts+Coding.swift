// Reads and writes the kept bytes of facts:
//
//     key of the newest forgotten notice, texts, parts, notices
//
// Each list begins with its count. A notice consists of its head (kind and date) and its body: id and flags, followed by
// the fields that the flags announce. Dates are stored as differences. A notification from Apple takes about 60 bytes,
// however long its names are.
//
// Bytes that facts cannot have are rejected.

internal import Notices
internal import SubscriptionHistory

private struct Flags: OptionSet {
    let rawValue: UInt64
    static let transaction = Flags(rawValue: 1 << 0)
    static let info = Flags(rawValue: 1 << 1)
    static let numericId = Flags(rawValue: 1 << 2)
    static let original = Flags(rawValue: 1 << 3)
    static let expires = Flags(rawValue: 1 << 4)
    static let revocation = Flags(rawValue: 1 << 5)
    static let percentage = Flags(rawValue: 1 << 6)
    static let price = Flags(rawValue: 1 << 7)
    static let period = Flags(rawValue: 1 << 8)
    static let periods = Flags(rawValue: 1 << 9)
    static let upgraded = Flags(rawValue: 1 << 10)
    static let freeTrial = Flags(rawValue: 1 << 11)
    static let notPurchased = Flags(rawValue: 1 << 12)
    static let notRenewing = Flags(rawValue: 1 << 13)
    static let purchaseReason = Flags(rawValue: 1 << 14)
    static let renewalReason = Flags(rawValue: 1 << 15)
    static let autoRenew = Flags(rawValue: 1 << 16)
    static let intent = Flags(rawValue: 1 << 17)
    static let grace = Flags(rawValue: 1 << 18)
    static let priceIncrease = Flags(rawValue: 1 << 19)
    static let commitmentRenew = Flags(rawValue: 1 << 20)
    /// The product or plan of the next renewal.
    static let wanted = Flags(rawValue: 1 << 21)
    static let wantedCommitment = Flags(rawValue: 1 << 22)
    static let continuesAnother = Flags(rawValue: 1 << 23)
    static let ofInfo: Flags = [
        .info, .autoRenew, .intent, .grace, .priceIncrease, .commitmentRenew, .wanted, .wantedCommitment,
    ]
    static let ofTransaction = Flags(rawValue: (1 << 24 - 1) & ~ofInfo.rawValue)

    /// Flags of parts that a notice does not have are not written.
    var mayBeWritten: Bool {
        var used: Flags = []
        used.insert(.ofTransaction, if: contains(.transaction))
        used.insert(.ofInfo, if: contains(.info))
        return used.isSuperset(of: self) && !isSuperset(of: [.purchaseReason, .renewalReason])
    }

    mutating func insert(_ flag: Flags, if condition: Bool) {
        if condition { formUnion(flag) }
    }
}

/// Where the lists of the facts lie in the kept bytes.
struct KeptFacts {
    struct List {
        var count = 0
        var from: Int32 = 0
        var to: Int32 = 0
    }

    var reader = KeptReader(UnsafeBufferPointer(start: nil, count: 0))
    var texts = List()
    var parts = List()
    /// Where the first notice begins; -1: no notice is kept.
    var noticesFrom: Int32 = -1
}

/// The oldest notices of a long life. They lie in the kept bytes, and usually nobody needs more of them than this: see
/// `Timeline+Tail.swift`.
struct UnreadNotices: ~Copyable {
    private(set) var count = 0
    /// The end of the last one in the kept bytes.
    private(set) var to: Int32 = 0
    /// The key of the last one.
    private(set) var last: Notice.Key?
    /// The last date of purchase.
    private(set) var purchased = Int64.min
    /// The last date of a version or a revocation.
    private(set) var changed = Int64.min
    /// The transactions that they are about.
    private(set) var ids = Scratch<RowId>(capacity: 256)

    mutating func removeAll() {
        (count, to, last) = (0, 0, nil)
        (purchased, changed) = (.min, .min)
        ids.removeAll()
    }

    @inline(__always) mutating func add(_ transaction: Transaction) {
        purchased = max(purchased, transaction.purchaseDate)
        changed = max(changed, transaction.version.signedDate)
        if let date = transaction.revocationDate { changed = max(changed, date) }
        ids.append(transaction.id)
    }

    /// Counts all notices.
    mutating func end(_ count: Int, last: Notice.Key?, to end: Int32) {
        self.count = count
        self.last = last
        to = end
    }
}

// MARK: Reading

extension Facts {
    /// The bytes must stay where they are as long as the facts are used.
    /// - Returns: false: the bytes are invalid.
    mutating func read(_ reader: inout KeptReader) -> Bool {
        removeAll()
        let hasForgotten = reader.byte()
        guard hasForgotten <= 1 else { return false }
        if hasForgotten == 1 {
            forgotten = Notice.Key(
                signedDate: reader.signed(), id: NoticeId(high: reader.fixed(), low: reader.fixed()))
        }
        kept.texts.count = reader.count()
        kept.texts.from = Int32(truncatingIfNeeded: reader.place)
        for place in 0..<kept.texts.count {
            // Each text is written once.
            guard Int(texts.number(reader.text()).value) == place + 1, reader.isValid else { return false }
        }
        kept.texts.to = Int32(truncatingIfNeeded: reader.place)
        kept.parts.count = reader.count()
        kept.parts.from = Int32(truncatingIfNeeded: reader.place)
        for _ in 0..<kept.parts.count {
            let numbers = readParts(&reader)
            guard reader.isValid else { return false }
            parts.append(numbers)
        }
        kept.parts.to = Int32(truncatingIfNeeded: reader.place)
        let count = reader.count()
        guard reader.isValid, count <= Self.limit else { return false }
        kept.noticesFrom = Int32(truncatingIfNeeded: reader.place)
        guard readNotices(count, unread: count < Self.long ? 0 : count - Self.readAtOnce, &reader) else { return false }
        kept.reader = reader
        return true
    }

    /// Reads what was only looked through.
    mutating func readUnread() {
        guard unread.count > 0 else { return }
        let count = unread.count
        unread.removeAll()
        swap(&notices, &newest)
        notices.removeAll()
        var reader = kept.reader.again(from: kept.noticesFrom)
        guard readNotices(count, unread: 0, &reader) else { preconditionFailure("they could be read before") }
        for place in newest.indices { notices.append(newest[place]) }
        moveNews(by: count)
    }

    private func readParts(_ reader: inout KeptReader) -> PartNumbers {
        let numbers = PartNumbers(
            bundle: text(&reader), product: text(&reader), plan: text(&reader), storefront: text(&reader),
            currency: text(&reader))
        let commitment = reader.byte()
        if commitment > 1 { reader.refuse() }
        var parts = numbers
        parts.isCommitment = commitment == 1
        return parts
    }

    @inline(__always) private func text(_ reader: inout KeptReader) -> TextNumber {
        if let number = texts.number(reader.unsigned()) { return number }
        reader.refuse()
        return .none
    }

    /// The oldest of them are only looked through.
    /// - Returns: false: the bytes are invalid.
    private mutating func readNotices(_ count: Int, unread old: Int, _ reader: inout KeptReader) -> Bool {
        let tables = KeptTables(texts: texts.all, parts: parts.count)
        return lookThrough(old, tables, &reader) && readNotices(count - old, tables, &reader)
    }

    // Each has a reader of its own, so that its place stays in a register. They are two functions because the compiler
    // stops inlining what is called for each notice when a function gets too large.

    /// Checks notices like any others, but keeps only what `unread` says of them.
    private mutating func lookThrough(_ count: Int, _ tables: KeptTables, _ kept: inout KeptReader) -> Bool {
        var reader = kept
        var last: Notice.Key?
        for _ in 0..<count {
            guard let start = tables.readStart(&reader, after: last) else { return false }
            if start.flags.contains(.transaction) {
                var transaction = Transaction()
                tables.readTransaction(&reader, start, into: &transaction)
                unread.add(transaction)
            }
            if start.flags.contains(.info) {
                var info = Info()
                tables.readInfo(&reader, start, into: &info)
            }
            guard reader.isValid else { return false }
            last = start.key
        }
        unread.end(count, last: last, to: Int32(truncatingIfNeeded: reader.place))
        kept = reader
        return true
    }

    /// Appends notices.
    private mutating func readNotices(_ count: Int, _ tables: KeptTables, _ kept: inout KeptReader) -> Bool {
        var reader = kept
        var last = unread.last
        for _ in 0..<count {
            let from = Int32(truncatingIfNeeded: reader.place)
            guard let start = tables.readStart(&reader, after: last) else { return false }
            let notice = notices.appendUnwritten()
            notice.pointee.signedDate = start.key.signedDate
            notice.pointee.id = start.key.id
            notice.pointee.type = start.type
            notice.pointee.subtype = start.subtype
            notice.pointee.transaction = nil
            notice.pointee.info = nil
            if start.flags.contains(.transaction) {
                notice.pointee.transaction = Transaction()
                tables.readTransaction(&reader, start, into: &notice.pointee.transaction!)
            }
            if start.flags.contains(.info) {
                notice.pointee.info = Info()
                tables.readInfo(&reader, start, into: &notice.pointee.info!)
            }
            let to = Int32(truncatingIfNeeded: reader.place)
            notice.pointee.kept = Notice.Kept(from: from, body: start.body, to: to)
            guard reader.isValid else { return false }
            last = start.key
        }
        kept = reader
        return true
    }
}

/// What is needed to read the parts of a notice. If all facts were given to the functions below, the compiler would copy
/// them for each notice.
private struct KeptTables {
    let texts: UnsafeBufferPointer<TextPlace>
    let parts: Int

    /// What comes before the transaction and the renewal info of a notice.
    struct Start {
        var type: NoticeType
        var subtype: NoticeSubtype
        var key: Notice.Key
        var body: Int32
        var flags: Flags
    }

    /// nil: the bytes are invalid.
    @inline(always) func readStart(_ reader: inout KeptReader, after before: Notice.Key?) -> Start? {
        let kind = reader.byte()
        guard let type = NoticeType(rawValue: kind >> 4), let subtype = NoticeSubtype(rawValue: kind & 0xf) else {
            return nil
        }
        let signedDate = reader.signed(from: before?.signedDate ?? 0)
        let body = Int32(truncatingIfNeeded: reader.place)
        let key = Notice.Key(signedDate: signedDate, id: NoticeId(high: reader.fixed(), low: reader.fixed()))
        if let before, !(before < key) { return nil }
        let flags = Flags(rawValue: reader.unsigned())
        guard reader.isValid, flags.mayBeWritten else { return nil }
        return Start(type: type, subtype: subtype, key: key, body: body, flags: flags)
    }

    // These set all members where they stay: copying a notice takes as long as reading some of its members.

    @inline(always) func readTransaction(
        _ reader: inout KeptReader, _ notice: Start, into transaction: inout Transaction
    ) {
        let (flags, date) = (notice.flags, notice.key.signedDate)
        transaction.id = readId(&reader, isNumber: flags.contains(.numericId))
        transaction.version = Version(signedDate: reader.signed(from: date), hash: reader.fixed())
        let start = reader.signed(from: date)
        transaction.purchaseDate = start
        let place = reader.unsigned()
        if place >= UInt64(parts) { reader.refuse() }
        transaction.parts = Int32(truncatingIfNeeded: place)
        transaction.originalPurchaseDate = flags.contains(.original) ? reader.signed(from: start) : nil
        transaction.expiresDate = flags.contains(.expires) ? reader.signed(from: start) : nil
        transaction.revocationDate = flags.contains(.revocation) ? reader.signed(from: start) : nil
        transaction.revocationPercentage = flags.contains(.percentage) ? reader.signed() : nil
        transaction.price = flags.contains(.price) ? reader.signed() : nil
        transaction.period = flags.contains(.period) ? reader.signed() : nil
        transaction.periods = flags.contains(.periods) ? reader.signed() : nil
        transaction.reason =
            flags.contains(.purchaseReason) ? .purchase : flags.contains(.renewalReason) ? .renewal : .unknown
        transaction.isUpgraded = flags.contains(.upgraded)
        transaction.isFreeTrial = flags.contains(.freeTrial)
        transaction.isPurchased = !flags.contains(.notPurchased)
        transaction.isRenewing = !flags.contains(.notRenewing)
        transaction.continuesAnother = flags.contains(.continuesAnother)
        // Later code relies on these: a renewing row has an end, and no amount is beyond the limits.
        if transaction.isRenewing, transaction.expiresDate == nil { reader.refuse() }
        if let price = transaction.price, !(0...ChurnNews.limitPrice).contains(price) { reader.refuse() }
        if let share = transaction.revocationPercentage, !(0...ChurnNews.limitShare).contains(share) { reader.refuse() }
    }

    @inline(__always) private func readId(_ reader: inout KeptReader, isNumber: Bool) -> RowId {
        guard isNumber else {
            let number = text(&reader)
            // A number has one form.
            if !number.isNone, PurchaseId(texts[Int(number.value) - 1]).text != nil { return .text(number.value) }
            reader.refuse()
            return .text(0)
        }
        let number = reader.unsigned()
        if number >= TransactionId.limitNumber { reader.refuse() }
        return .number(number)
    }

    /// - Parameter info: an empty one.
    @inline(always) func readInfo(_ reader: inout KeptReader, _ notice: Start, into info: inout Info) {
        let (flags, date) = (notice.flags, notice.key.signedDate)
        info.version = Version(signedDate: reader.signed(from: date), hash: reader.fixed())
        if flags.contains(.autoRenew) { info.autoRenewStatus = reader.signed() }
        if flags.contains(.intent) { info.expirationIntent = reader.signed() }
        if flags.contains(.grace) { info.gracePeriodExpiresDate = reader.signed(from: date) }
        if flags.contains(.priceIncrease) { info.priceIncreaseStatus = reader.signed() }
        if flags.contains(.commitmentRenew) { info.commitmentAutoRenewStatus = reader.signed() }
        if flags.contains(.wanted) {
            info.product = text(&reader)
            info.plan = text(&reader)
            if info.product.isNone, info.plan.isNone { reader.refuse() }
        }
        if flags.contains(.wantedCommitment) {
            info.commitmentProduct = text(&reader)
            info.commitmentPlan = text(&reader)
            if info.commitmentProduct.isNone, info.commitmentPlan.isNone { reader.refuse() }
        }
    }

    @inline(__always) private func text(_ reader: inout KeptReader) -> TextNumber {
        let number = reader.unsigned()
        if number <= UInt64(texts.count) { return TextNumber(value: UInt32(number)) }
        reader.refuse()
        return .none
    }
}

// MARK: Writing

extension Facts {
    /// What has not changed is copied from the kept bytes.
    /// - Parameter copiesKept: false: all is written from its values, for tests. The bytes are the same.
    mutating func write(to writer: inout ByteWriter, copiesKept: Bool) {
        if !copiesKept { readUnread() }
        let kept = copiesKept ? kept : KeptFacts()
        writer.byte(forgotten == nil ? 0 : 1)
        if let forgotten {
            writer.signed(forgotten.signedDate)
            writer.fixed(forgotten.id.high)
            writer.fixed(forgotten.id.low)
        }
        // New texts and parts are behind the kept ones.
        writer.unsigned(UInt64(texts.count))
        writer.append(kept.reader.bytes(from: kept.texts.from, to: kept.texts.to))
        for value in kept.texts.count..<texts.count {
            if let number = texts.number(UInt64(value + 1)), let text = texts[number] { writer.text(text.bytes) }
        }
        writer.unsigned(UInt64(parts.count))
        writer.append(kept.reader.bytes(from: kept.parts.from, to: kept.parts.to))
        for place in kept.parts.count..<parts.count { parts[place].write(to: &writer) }
        writer.unsigned(UInt64(count))
        writeNotices(to: &writer, kept)
    }

    private func writeNotices(to writer: inout ByteWriter, _ kept: KeptFacts) {
        // Neighbours that were neighbours before are copied together, those that were not read first.
        var (from, to) = (Int32(0), Int32(0))
        var endBefore = kept.noticesFrom
        var date: Int64 = 0
        if let last = unread.last {
            (from, to) = (kept.noticesFrom, unread.to)
            endBefore = unread.to
            date = last.signedDate
        }
        for place in notices.indices {
            let own = kept.noticesFrom < 0 ? Notice.Kept() : notices[place].kept
            if own.isEmpty || own.from != endBefore {
                writer.append(kept.reader.bytes(from: from, to: to))
                (from, to) = (0, 0)
                notices[place].writeHead(to: &writer, after: date)
                if own.isEmpty {
                    notices[place].writeBody(to: &writer)
                } else {
                    (from, to) = (own.body, own.to)
                }
            } else {
                if from == to { from = own.from }
                to = own.to
            }
            endBefore = own.isEmpty ? -1 : own.to
            date = notices[place].signedDate
        }
        writer.append(kept.reader.bytes(from: from, to: to))
    }
}

extension PartNumbers {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.unsigned(UInt64(bundle.value))
        writer.unsigned(UInt64(product.value))
        writer.unsigned(UInt64(plan.value))
        writer.unsigned(UInt64(storefront.value))
        writer.unsigned(UInt64(currency.value))
        writer.byte(isCommitment ? 1 : 0)
    }
}

extension Notice {
    fileprivate var flags: Flags {
        var flags: Flags = []
        if let transaction {
            flags.insert(.transaction)
            if case .number = transaction.id { flags.insert(.numericId) }
            flags.insert(.original, if: transaction.originalPurchaseDate != nil)
            flags.insert(.expires, if: transaction.expiresDate != nil)
            flags.insert(.revocation, if: transaction.revocationDate != nil)
            flags.insert(.percentage, if: transaction.revocationPercentage != nil)
            flags.insert(.price, if: transaction.price != nil)
            flags.insert(.period, if: transaction.period != nil)
            flags.insert(.periods, if: transaction.periods != nil)
            flags.insert(.upgraded, if: transaction.isUpgraded)
            flags.insert(.freeTrial, if: transaction.isFreeTrial)
            flags.insert(.notPurchased, if: !transaction.isPurchased)
            flags.insert(.notRenewing, if: !transaction.isRenewing)
            flags.insert(.continuesAnother, if: transaction.continuesAnother)
            flags.insert(.purchaseReason, if: transaction.reason == .purchase)
            flags.insert(.renewalReason, if: transaction.reason == .renewal)
        }
        if let info {
            flags.insert(.info)
            flags.insert(.autoRenew, if: info.autoRenewStatus != nil)
            flags.insert(.intent, if: info.expirationIntent != nil)
            flags.insert(.grace, if: info.gracePeriodExpiresDate != nil)
            flags.insert(.priceIncrease, if: info.priceIncreaseStatus != nil)
            flags.insert(.commitmentRenew, if: info.commitmentAutoRenewStatus != nil)
            flags.insert(.wanted, if: !info.product.isNone || !info.plan.isNone)
            flags.insert(.wantedCommitment, if: !info.commitmentProduct.isNone || !info.commitmentPlan.isNone)
        }
        return flags
    }

    fileprivate func writeHead(to writer: inout ByteWriter, after date: Int64) {
        writer.byte(type.rawValue << 4 | subtype.rawValue)
        writer.signed(signedDate, from: date)
    }

    fileprivate func writeBody(to writer: inout ByteWriter) {
        writer.fixed(id.high)
        writer.fixed(id.low)
        let flags = flags
        writer.unsigned(flags.rawValue)
        transaction?.write(to: &writer, signedDate)
        info?.write(to: &writer, signedDate, flags)
    }
}

extension Transaction {
    fileprivate func write(to writer: inout ByteWriter, _ date: Int64) {
        switch id {
        case .number(let number): writer.unsigned(number)
        case .text(let number): writer.unsigned(UInt64(number))
        }
        writer.signed(version.signedDate, from: date)
        writer.fixed(version.hash)
        writer.signed(purchaseDate, from: date)
        writer.unsigned(UInt64(parts))
        if let originalPurchaseDate { writer.signed(originalPurchaseDate, from: purchaseDate) }
        if let expiresDate { writer.signed(expiresDate, from: purchaseDate) }
        if let revocationDate { writer.signed(revocationDate, from: purchaseDate) }
        if let revocationPercentage { writer.signed(revocationPercentage) }
        if let price { writer.signed(price) }
        if let period { writer.signed(period) }
        if let periods { writer.signed(periods) }
    }
}

extension Info {
    fileprivate func write(to writer: inout ByteWriter, _ date: Int64, _ flags: Flags) {
        writer.signed(version.signedDate, from: date)
        writer.fixed(version.hash)
        if let autoRenewStatus { writer.signed(autoRenewStatus) }
        if let expirationIntent { writer.signed(expirationIntent) }
        if let gracePeriodExpiresDate { writer.signed(gracePeriodExpiresDate, from: date) }
        if let priceIncreaseStatus { writer.signed(priceIncreaseStatus) }
        if let commitmentAutoRenewStatus { writer.signed(commitmentAutoRenewStatus) }
        if flags.contains(.wanted) {
            writer.unsigned(UInt64(product.value))
            writer.unsigned(UInt64(plan.value))
        }
        if flags.contains(.wantedCommitment) {
            writer.unsigned(UInt64(commitmentProduct.value))
            writer.unsigned(UInt64(commitmentPlan.value))
        }
    }
}
