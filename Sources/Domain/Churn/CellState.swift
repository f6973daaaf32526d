// The state that a worker keeps for a cell.

internal import Contract
public import JSON
public import Notices
internal import Records
internal import SubscriptionHistory

/// The sums, and the record that last changed them. One record can cause both a subtraction and an addition of the same
/// values: the timers before it run first, and the record may correct what they posted. So the total change of the
/// current record is kept separately.
public struct CellState: Sendable, Equatable {
    /// A place in the partition: the record after which something held.
    public struct Mark: Sendable, Equatable {
        public var asOf: Int64
        public var offset: Int64

        public init(asOf: Int64, offset: Int64) {
            self.asOf = asOf
            self.offset = offset
        }
    }

    public private(set) var sums = Sums()
    public private(set) var mark: Mark
    /// The total change by the last record that touched the cell.
    private var change = Sums()
    private var changedAt: Int64
    private var markBefore: Mark

    public init(at mark: Mark) {
        self.mark = mark
        changedAt = mark.offset
        markBefore = mark
    }

    /// Nothing was counted yet. The memory is kept.
    public mutating func removeAll(at mark: Mark) {
        self.mark = mark
        changedAt = mark.offset
        markBefore = mark
        sums.removeAll()
        change.removeAll()
    }

    public mutating func add(_ more: UnsafeBufferPointer<Sums.Sum>, at now: Mark) {
        if changedAt != now.offset {
            change.removeAll()
            changedAt = now.offset
            markBefore = mark
        }
        sums.add(more)
        change.add(more)
        mark = change.isEmpty ? markBefore : now
    }

    public func write(to writer: inout ByteWriter) {
        for mark in [mark, markBefore] {
            writer.signed(mark.asOf)
            writer.signed(mark.offset)
        }
        writer.signed(changedAt)
        sums.write(to: &writer)
        change.write(to: &writer)
    }

    /// Reads what `write` wrote, into the memory that the cell before has used.
    /// - Returns: false: the bytes are not a valid state.
    public mutating func read(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var reader = KeptReader(bytes)
        mark = Mark(asOf: reader.signed(), offset: reader.signed())
        markBefore = Mark(asOf: reader.signed(), offset: reader.signed())
        changedAt = reader.signed()
        sums.read(&reader)
        change.read(&reader)
        return reader.isValid && reader.isAtEnd
    }
}

/// A value of `churn-cells`.
public struct CellRecord: Sendable, Equatable {
    public var key: CellKey
    public var sums: Sums
    public var mark: CellState.Mark

    public init(key: CellKey, sums: Sums, mark: CellState.Mark) {
        self.key = key
        self.sums = sums
        self.mark = mark
    }

    public var value: [UInt8] {
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
    public init?(_ record: borrowing JSONDocument) {
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
