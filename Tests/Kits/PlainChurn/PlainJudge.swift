// Compares the topics that a churn worker has written with what the plain metrics compute from its input.

public struct PlainJudge: Sendable {
    private struct Chain: Hashable, Comparable {
        let partition: Int32
        let id: String

        static func < (one: Chain, other: Chain) -> Bool {
            (one.partition, one.id) < (other.partition, other.id)
        }
    }

    private let zone: String
    private var records: [Chain: [[UInt8]]] = [:]
    /// The largest timestamp of each partition.
    private var clocks: [Int32: Int64] = [:]
    /// The last value of each key.
    public private(set) var cells: [String: PlainCell] = [:]
    private var events = PlainIdentities()
    private var strange: [String] = []

    /// - Parameter zone: its IANA name.
    public init(zone: String) { self.zone = zone }

    // MARK: The records that were read, topic by topic, each in its order

    /// Of `notifications`, ticks included.
    public mutating func hear(partition: Int32, timestamp: Int64, key: [UInt8]?, value: [UInt8]?) {
        clocks[partition] = max(clocks[partition] ?? 0, timestamp)
        guard let key, let value else { return }
        records[Chain(partition: partition, id: String(decoding: key, as: UTF8.self)), default: []].append(value)
    }

    /// Of `churn-cells`.
    public mutating func see(cell key: [UInt8], _ value: [UInt8]?) {
        let name = String(decoding: key, as: UTF8.self)
        guard let value else {
            cells[name] = nil
            return
        }
        guard let json = PlainJSON(value), let cell = PlainCell(json) else {
            strange.append("\(name) is no cell")
            return
        }
        let parts = ["bundleId", "productId", "billingPlan", "storefront", "currency"].map { json.text($0) ?? "" }
        let told = ["\(json.integer("partition") ?? -1)", json.text("day") ?? ""] + parts
        if told.joined(separator: "|") != name { strange.append("\(name) says that it is \(told)") }
        if cell == PlainCell() { strange.append("\(name) is empty, and no tombstone") }
        cells[name] = cell
    }

    /// Of `churn-events`.
    public mutating func see(event value: [UInt8]) {
        guard let json = PlainJSON(value), let cell = PlainCell(json), let key = json.plainText("cell") else {
            strange.append("\(String(decoding: value, as: UTF8.self)) is no event")
            return
        }
        events.add([key: cell])
    }

    // MARK: Judgement

    public var chainCount: Int { records.count }
    /// The standings of all chains, at their partitions' clocks.
    public var standings: [PlainStanding] { chains.map { $0.churn.standing(at: $0.clock) } }

    /// One after the other: all of them at once would not fit into the memory of a small machine.
    private var chains: some Sequence<(churn: PlainChurn, clock: Int64)> {
        records.sorted { $0.key < $1.key }.lazy.map { chain, records in
            let churn = PlainChurn(records: records, chain: chain.id, zone: zone, partition: chain.partition)
            return (churn, clocks[chain.partition] ?? 0)
        }
    }

    /// What is wrong; empty if nothing is: cells that are not the sum over all chains, events that do not add up to the cells,
    /// and identities that do not hold, now or at the end of some days.
    public func wrong() -> [String] {
        var found = PlainIdentities()
        found.add(cells)
        let all = found.days
        let days = stride(from: 0, to: all.count, by: max(1, all.count / 4)).map { all[$0] }
        var expected = PlainIdentities()
        var now: [PlainStanding] = []
        var then = [[PlainStanding]](repeating: [], count: days.count)
        for chain in chains {
            let told = chain.churn.told(at: chain.clock, endsOf: days)
            expected.add(told.cells)
            now.append(told.now)
            for (place, standing) in told.then.enumerated() { then[place].append(standing) }
        }
        var wrong = strange
        wrong += Self.differences("cell", cells, from: expected.cells)
        wrong += Self.differences("events of", events.cells, from: cells)
        wrong += found.violations(standings: now)
        for (day, standings) in zip(days, then) {
            wrong += found.violations(standings: standings, atEndOf: day).map { "\($0), at the end of \(day)" }
        }
        return wrong
    }

    private static func differences(
        _ what: String, _ found: [String: PlainCell], from expected: [String: PlainCell]
    ) -> [String] {
        let (found, expected) = (found.mapValues(\.withoutZeros), expected.mapValues(\.withoutZeros))
        return Set(found.keys).union(expected.keys).sorted().compactMap { key in
            let (found, expected) = (found[key] ?? PlainCell(), expected[key] ?? PlainCell())
            return found == expected ? nil : "\(what) \(key): \(found), not \(expected)"
        }
    }
}

extension PlainCell {
    /// nil if a counter is not a number, or is 0.
    init?(_ json: PlainJSON) {
        guard let counts = Self.counters(json["counts"]), let money = Self.counters(json["money"]) else { return nil }
        self.init(counts: counts, money: money)
    }

    private static func counters(_ json: PlainJSON?) -> [String: Int64]? {
        guard case .object(let members, _)? = json else { return nil }
        var counters: [String: Int64] = [:]
        for (name, value) in members {
            guard case .number(let digits) = value, let number = Int64(digits), number != 0 else { return nil }
            counters[name] = number
        }
        return counters
    }

    fileprivate var withoutZeros: PlainCell {
        PlainCell(counts: counts.filter { $0.value != 0 }, money: money.filter { $0.value != 0 })
    }
}

extension PlainJSON {
    /// Whatever is in it.
    fileprivate func plainText(_ name: String) -> String? {
        guard case .string(let text)? = self[name] else { return nil }
        return text
    }
}
