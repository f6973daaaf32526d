// The expected outputs of the ledger: a plain fold over the input, which shares no code with runtime or processor.

internal import Log

/// A record as a reader of committed data sees it.
public struct LedgerRecord: Sendable {
    public var partition: Int32
    public var offset: Int64
    public var timestamp: Int64
    public var key: [UInt8]?
    public var value: [UInt8]?
    /// The last header of each name.
    public var headers: [String: String]
    public var headerNames: [String]

    public init(
        partition: Int32, offset: Int64, timestamp: Int64, key: [UInt8]?, value: [UInt8]?,
        headers: [(name: String, value: String)]
    ) {
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = Dictionary(headers.map { ($0.name, $0.value) }) { $1 }
        headerNames = headers.map(\.name)
    }

    var keyText: String { String(decoding: key ?? [], as: UTF8.self) }
    var valueText: String { String(decoding: value ?? [], as: UTF8.self) }
}

/// An output that must be there exactly once.
struct Expected: Equatable, CustomStringConvertible {
    var id: String
    var key: String
    /// The row in a sum depends on how two topics were interleaved: `row ?` stands for it.
    var text: String
    var timestamp: Int64
    var source: String

    var description: String { "\(id) \(key): \(text) [\(timestamp) of \(source)]" }
}

struct LedgerOracle {
    var told: [Int32: [Expected]] = [:]
    var rowsTold: [Int32: [Expected]] = [:]
    /// The values of each total of a partition, one after the other; nil: the total has no value.
    var totals: [Int32: [String: [String?]]] = [:]
    /// Source, reason, key and value of each dead letter.
    var letters: [[String]] = []
    /// Rows in a wrong partition, by their place.
    var misplaced: [String: Int32] = [:]

    private struct Account {
        var count = 0
        var sum = 0
        var fired = 0
        var wake: Int64?
        var exists = false
        var second = false
    }

    private let prefix: String

    init(prefix: String, events: [LedgerRecord], rows: [LedgerRecord], partitions: Int32) {
        self.prefix = prefix
        for partition in 0..<partitions {
            foldEvents(events.filter { $0.partition == partition }, partition)
            foldRows(rows.filter { $0.partition == partition }, partition, partitions)
        }
    }

    private mutating func foldEvents(_ events: [LedgerRecord], _ partition: Int32) {
        var accounts: [String: Account] = [:]
        var clock = Int64.min
        var sums: [Int: Int] = [:]
        for event in events {
            clock = max(clock, event.timestamp)
            let source = "\(prefix)events:\(partition):\(event.offset)"
            var outputs = 0
            func tell(_ key: String, _ text: String, _ timestamp: Int64) {
                told[partition, default: []].append(
                    Expected(
                        id: "\(partition)-\(event.offset)-\(outputs)", key: key, text: text, timestamp: timestamp,
                        source: source))
                outputs += 1
            }
            func add(_ number: Int, _ other: Int) {
                sums[other % 5] = (sums[other % 5, default: 0] + number) % 7
                let sum = sums[other % 5]!
                note(sum == 0 ? nil : "\(sum) \(number) \(event.offset) \(clock)", other)
            }
            func note(_ total: String?, _ other: Int) {
                totals[partition, default: [:]]["\0total-\(other % 5)", default: []].append(total)
            }
            while let (key, due) = accounts.compactMap({ key, account in account.wake.map { (key, $0) } })
                .filter({ $0.1 <= clock }).min(by: { ($0.1, $0.0) < ($1.1, $1.0) })
            {
                accounts[key]!.wake = nil
                if (accounts[key]!.fired + 1) % 7 == 0 {
                    letters.append([source, "seventh", key, ""])
                    continue
                }
                accounts[key]!.fired += 1
                add(1, accounts[key]!.fired)
                tell(key, "woken \(accounts[key]!.fired) at \(due) sum \(accounts[key]!.sum)", due)
                if accounts[key]!.fired % 4 != 0 { accounts[key]!.wake = due + 100 }
            }
            let schema = event.headers["schema"]?.split(separator: "/").map(String.init) ?? []
            // Builds before 0.2 wrote the type into a header of its own.
            let type = event.headers["type"] ?? schema.first
            if type == "tick" || (type != nil && type != "word") { continue }
            let words = event.valueText.split(separator: " ").map(String.init)
            let number = words.count > 1 ? Int(words[1])! : 0
            let key = event.keyText
            var reason: String?
            if type == nil {
                reason = "no_type"
            } else if schema.count == 1 {
                reason = "schema"
            } else if event.key == nil {
                reason = "no_key"
            }
            if let reason {
                letters.append([source, reason, key, event.valueText])
                continue
            }
            var account = accounts[key] ?? Account()
            switch words.first {
            case "add", "twice":
                account.count += 1
                account.sum += number
                account.exists = true
                add(number, number)
                tell(key, "sum \(account.count) \(account.sum) at \(clock) row ?", event.timestamp)
                if words[0] == "twice" { tell(key, "again \(account.sum)", event.timestamp) }
            case "wake":
                account.exists = true
                account.wake = clock + Int64(number)
            case "sleep":
                account.wake = nil
                sums[0] = nil
                note(nil, 0)
            case "toggle":
                account.second.toggle()
                tell(key, "toggled \(account.second ? "on" : "off")", event.timestamp)
            case "poison": letters.append([source, "poison", key, event.valueText])
            default: letters.append([source, "no_word", key, event.valueText])
            }
            accounts[key] = account
        }
    }

    private mutating func foldRows(_ rows: [LedgerRecord], _ partition: Int32, _ partitions: Int32) {
        var counts: [String: Int] = [:]
        for row in rows {
            let source = "\(prefix)rows:\(partition):\(row.offset)"
            if let key = row.key {
                let home = Partitioner.partition(of: key, count: partitions)
                if home != partition {
                    misplaced[source] = home
                    continue
                }
            }
            let words = row.valueText.split(separator: " ").map(String.init)
            guard words.first == "row", row.key != nil else {
                letters.append([source, row.key == nil ? "no_key" : "no_row", row.keyText, row.valueText])
                continue
            }
            counts[row.keyText, default: 0] += 1
            rowsTold[partition, default: []].append(
                Expected(
                    id: "\(prefix)rows-\(partition)-\(row.offset)-0", key: row.keyText,
                    text: "row \(words[1]) \(counts[row.keyText]!)", timestamp: row.timestamp, source: source))
        }
    }
}
