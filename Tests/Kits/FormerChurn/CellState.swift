// The state that a worker keeps for a cell.

internal import Contract
internal import JSON
internal import Notices
internal import Records

/// The sums, and the record that last changed them. One record can cause both a subtraction and an addition of the same
/// values: the timers before it run first, and the record may correct what they posted. So the total change of the
/// current record is kept separately.
struct CellState: Sendable, Equatable {
    /// A place in the partition: the record after which something held.
    struct Mark: Sendable, Equatable {
        var asOf: Int64
        var offset: Int64

        init(asOf: Int64, offset: Int64) {
            self.asOf = asOf
            self.offset = offset
        }
    }

    private(set) var sums = Sums()
    private(set) var mark: Mark
    /// The total change by the last record that touched the cell.
    private var change = Sums()
    private var changedAt: Int64
    private var markBefore: Mark

    init(at mark: Mark) {
        self.mark = mark
        changedAt = mark.offset
        markBefore = mark
    }

    mutating func add(_ more: Sums, at now: Mark) {
        if changedAt != now.offset {
            change = Sums()
            changedAt = now.offset
            markBefore = mark
        }
        sums.add(more)
        change.add(more)
        mark = change.isEmpty ? markBefore : now
    }

    var bytes: [UInt8] {
        var writer = ByteWriter(capacity: 64 + sums.all.count * 4)
        for mark in [mark, markBefore] {
            writer.signed(mark.asOf)
            writer.signed(mark.offset)
        }
        writer.signed(changedAt)
        writer.sums(sums)
        writer.sums(change)
        return writer.bytes
    }

    /// nil if the bytes are not a valid state.
    init?(_ bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        guard let asOf = reader.signed(), let offset = reader.signed(), let asOfBefore = reader.signed(),
            let offsetBefore = reader.signed(), let changedAt = reader.signed(), let sums = reader.sums(),
            let change = reader.sums(), reader.isAtEnd
        else { return nil }
        mark = Mark(asOf: asOf, offset: offset)
        markBefore = Mark(asOf: asOfBefore, offset: offsetBefore)
        self.changedAt = changedAt
        self.sums = sums
        self.change = change
    }
}

/// A value of `churn-cells`.
struct CellRecord: Sendable, Equatable {
    var key: CellKey
    var sums: Sums
    var mark: CellState.Mark

    init(key: CellKey, sums: Sums, mark: CellState.Mark) {
        self.key = key
        self.sums = sums
        self.mark = mark
    }

    var value: [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("v", RecordType.churnCell.version)
            json.member("partition", key.partition)
            json.member("day", key.day.description)
            json.part("bundleId", key.parts.bundleId)
            json.part("productId", key.parts.productId)
            json.part("billingPlan", key.parts.billingPlan)
            json.part("storefront", key.parts.storefront)
            json.part("currency", key.parts.currency)
            sums.write(to: &json)
            json.member("asOf", mark.asOf)
            json.member("offset", mark.offset)
        }
        return json.bytes
    }
}

extension CellRecord {
    /// nil if the document's value is not a cell. Counters of later versions are ignored.
    init?(_ record: borrowing JSONDocument) {
        func part(_ name: StaticString) -> Text { record.text(name, of: record.root) ?? "" }
        guard let partition = record.integer("partition", of: record.root).flatMap(Int32.init(exactly:)),
            let day = record.text("day", of: record.root).flatMap({ CivilDay($0.description) }),
            let asOf = record.integer("asOf", of: record.root), let offset = record.integer("offset", of: record.root),
            let counts = record.object("counts", of: record.root), let money = record.object("money", of: record.root)
        else { return nil }
        var sums = Sums()
        for object in [counts, money] {
            var next = record.firstMember(of: object)
            while let member = next {
                guard let value = record.integer(member.value) else { return nil }
                let name = record.name(of: member).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
                if let counter = ChurnCounter(name: name) { sums.add(value, to: counter) }
                next = record.member(after: member)
            }
        }
        self.init(
            key: CellKey(
                partition: partition, day: day,
                parts: CellParts(
                    bundleId: part("bundleId"), productId: part("productId"), billingPlan: part("billingPlan"),
                    storefront: part("storefront"), currency: part("currency"))), sums: sums,
            mark: CellState.Mark(asOf: asOf, offset: offset))
    }
}

extension JSONWriter {
    fileprivate mutating func part(_ name: StaticString, _ text: Text) {
        member(name, utf8: text.bytes.isEmpty ? nil : text.bytes)
    }
}
