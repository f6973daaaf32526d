import Contract
import Entitlements
import JSON
import KafkaTestKit
import Log
import MemoryLog
import Platform
import Testing
import WorkerTestKit

@testable import CommandLine
@testable import Roles
@testable import Tools

@Suite struct `Inspect asked for wrongly` {
    private static let days = ["--from", "2026-01-01", "--to", "2026-02-01"]
    private static let long = String(repeating: "7", count: 129)

    @Test(arguments: [
        (["inspect"], "usage: perennial inspect subscription|account ID"),
        (["inspect", "subscription"], "perennial inspect subscription ID"), (["inspect", "account"], "account TOKEN"),
        (["inspect", "subscription", "1", "2"], "\"2\" is one argument too many"),
        (["inspect", "cell", "x"], "subscription, account, refunds or metrics, not \"cell\""),
        (["inspect", "subscription", ""], "ID is empty; name an original transaction id"),
        (["inspect", "account", ""], "TOKEN is empty; name an appAccountToken"),
        (["inspect", "subscription", long], "ID has 129 bytes"), (["inspect", "account", long], "TOKEN has 129 bytes"),
        (["inspect", "subscription", "20 00"], "no spaces"), (["inspect", "subscription", "2\u{1b}[2J"], "no spaces"),
        (["inspect", "subscription", "2é"], "no spaces"),
        (["inspect", "account", "a|b"], "\"a|b\" is not an appAccountToken: that is a UUID, like 7e5d0c1a-"),
        (["inspect", "account", "7e5d0c1a-0001-4000-8000-00000000000g"], "is not an appAccountToken"),
        (["inspect", "account", "2000000000000001"], "Then: perennial inspect subscription 2000000000000001"),
        (
            ["inspect", "subscription", "1", "--content", "2026-01-01", "2026-02-01"],
            "\"2026-02-01\" is one argument too many; separate the values of --content with commas, no spaces: DATE[,...]"
        ),
        (
            ["inspect", "subscription", "1", "--content", "1771000000000"],
            "2h or 7d (ago), not \"1771000000000\"; only the api takes milliseconds"
        ),
        (["inspect", "subscription", "1", "--content", "2026-01-01, 2026-02-01"], "write the dates without spaces"),
        (["inspect", "subscription", "1", "--format", "xml"], "--format must be text or json, not \"xml\""),
        (["inspect", "subscription", "1", "--at", "noon"], "--at takes 2026-11-20"),
        (["inspect", "subscription", "1", "--content", "2026-01-01,,2026-02-01"], "--content takes 2026-11-20"),
        (["inspect", "subscription", "1", "--content", ""], "--content takes 2026-11-20"),
        (["inspect", "account", InspectDesk.token, "--content", "2026-01-01"], "--content belongs to subscription"),
        (["inspect", "subscription", "1", "--from", "2026-01-01"], "--from belongs to metrics"),
        (["inspect", "metrics"], "metrics need --from DAY and --to DAY"),
        (["inspect", "metrics", "--from", "2026-01-01"], "metrics need --from DAY and --to DAY"),
        (["inspect", "metrics", "pro"] + days, "\"pro\" is one argument too many"),
        (["inspect", "metrics", "--at", "1d"] + days, "--at belongs to a subscription or an account"),
        (["inspect", "metrics", "--format", "text"] + days, "must be table, json or csv, not \"text\""),
        (
            ["inspect", "metrics", "--from", "1d", "--to", "2026-02-01"],
            "--from takes a day, such as 2026-11-01, not \"1d\""
        ),
        (["inspect", "metrics", "--from", "2026-01-01", "--to", "2026-13-01"], "--to takes a day"),
        (["inspect", "metrics", "--from", "2026-01-01", "--to", "2026-01-01"], "--to must be after --from"),
        (["inspect", "metrics", "--from", "2006-01-01", "--to", "2026-01-01"], "at most 3660 days"),
        (["inspect", "metrics", "--by", "product,country"] + days, "currency, separated by commas, not \"country\""),
        (["inspect", "metrics", "--by", "product", "plan"] + days, "is one argument too many"),
        (["inspect", "metrics", "--chart", "revenu"] + days, "not \"revenu\"; the nearest is revenue"),
        (["inspect", "metrics", "--chart", "mrr", "--format", "csv"] + days, "remove --format csv"),
        (["inspect", "metrics"] + days, "kafka.bootstrap.servers is not set"),
        (["inspect", "subscription", "1"], "kafka.bootstrap.servers is not set"),
    ])
    func `is answered with what is right and exit code 2`(arguments: [String], words: String) {
        let recorder = Recorder()
        #expect(Program.standard.run(arguments, environment: [], output: recorder.output) == .wrongUsage)
        #expect(recorder.messages.contains { $0.contains(words) }, "\(recorder.messages)")
        #expect(recorder.messages.allSatisfy { !$0.contains("\u{1b}") })
        #expect(recorder.data.isEmpty)
    }

    @Test func `takes no more dates than anybody publishes`() throws {
        let desk = try InspectDesk()
        let dates = Array(repeating: "2026-01-01", count: InspectQuery.limitDates + 1).joined(separator: ",")
        let answer = try desk.inspect(["subscription", "1", "--content", dates])
        #expect(answer.code == .wrongUsage)
        #expect(answer.messages.first?.contains("up to 1000 dates, not 1001") == true)
    }
}

@Suite struct `A subscription looked at` {
    private let desk: InspectDesk
    private let start = "2026-10-10T09:30"
    private let end = "2026-11-10T09:30"

    init() throws {
        desk = try InspectDesk()
        try desk.tell(
            Story.id,
            told("SUBSCRIBED", "INITIAL_BUY", on: start, bought("1", start, to: end), renewal(1, at: end)))
    }

    private func renew() throws {
        let next = "2026-12-10T09:30"
        try desk.tell(Story.id, told("DID_RENEW", on: end, bought("2", end, to: next), renewal(1, at: next)))
    }

    private func report(_ arguments: [String] = [], rules: EntitlementRules? = nil) throws -> JSONValue {
        let answer = try desk.inspect(["subscription", Story.id, "--format", "json"] + arguments, rules: rules)
        #expect(answer.code == .done)
        return try JSONValue.read(Array(answer.lines.utf8))
    }

    /// On one line, because it does not matter where lines are wrapped.
    private func card(_ answer: InspectDesk.Answer) -> String {
        answer.lines.split(whereSeparator: { $0 == " " || $0 == "\n" }).joined(separator: " ")
    }

    private func published(_ report: JSONValue) -> String? { report["published"]?["agreement"]?.string }

    @Test func `that nobody knows is told with the places that were looked into`() throws {
        try desk.work()
        let answer = try desk.inspect(["subscription", "2000000000000099"])
        #expect(answer.code == .no)
        #expect(answer.lines.isEmpty)
        #expect(
            answer.messages == [
                "perennial inspect: there is no subscription 2000000000000099: searched partition "
                    + "\(InspectDesk.partition(of: "2000000000000099")) of appstore.production.notifications and "
                    + "appstore.production.entitlements. If it belongs to sandbox, add "
                    + "--environment sandbox"
            ])
    }

    @Test func `that nobody knows and that has the form of an appAccountToken is told where to look`() throws {
        try desk.work()
        let answer = try desk.inspect(["subscription", InspectDesk.token.uppercased()])
        #expect(answer.code == .no)
        #expect(
            answer.messages.last?.contains(
                "looks like an appAccountToken: perennial inspect account \(InspectDesk.token)")
                == true)
    }

    @Test func `is the same as what the worker has published`() throws {
        try renew()
        try desk.wait(until: "2026-11-22")
        let report = try report()
        #expect(published(report) == "same")
        #expect(report["published"]?["rules"]?.string == desk.rules.fingerprint)
        let value = try #require(report["published"]?["value"])
        #expect(value["sequence"]?.integer == 2)
        #expect(Agreement.differences(try #require(report["entitlement"]), value).isEmpty)
    }

    @Test func `is told as of the clock of its partition, ticks included`() throws {
        try desk.wait(until: "2026-11-10T10:30")
        #expect(try report()["at"]?.integer == at("2026-11-10T10:30"))
        #expect(try report()["entitlement"]?["state"]?.string == "expired")
        #expect(published(try report()) == "same")
    }

    @Test func `that the worker has not come to is not published`() throws {
        #expect(published(try report()) == "absent")
        #expect(
            card(try desk.inspect(["subscription", Story.id])).contains(
                "NOTHING in entitlements: the worker is behind, or is not running"))
    }

    @Test func `needs no topic of answers`() throws {
        let answer = try desk.inspect(["subscription", Story.id], without: .entitlements)
        #expect(answer.code == .done)
        #expect(answer.lines.contains("NOTHING in entitlements"))
    }

    @Test func `shows by how many notifications the worker is behind`() throws {
        try desk.work()
        try renew()
        let report = try report()
        #expect(published(report) == "behind")
        #expect(report["published"]?["notificationsBehind"]?.integer == 1)
        #expect(card(try desk.inspect(["subscription", Story.id])).contains("the worker is behind by 1 notification;"))
    }

    @Test func `shows that a change was due which the worker has not made`() throws {
        try desk.work()
        try desk.simulation.tick(at: at("2026-11-22"))
        let report = try report()
        #expect(published(report) == "behind")
        #expect(report["published"]?["notificationsBehind"]?.integer == 0)
        #expect(card(try desk.inspect(["subscription", Story.id])).contains("a change that was due since"))
        // A value that a timer wrote, before another notification came.
        try desk.work()
        try desk.tell(
            Story.id,
            told(
                "DID_RENEW", on: "2026-11-23", bought("2", "2026-11-23", to: "2026-12-23"), renewal(1, at: "2026-12-23")
            ))
        #expect(try self.report()["published"]?["notificationsBehind"]?.integer == 1)
    }

    @Test func `shows that the value was made with other settings`() throws {
        try desk.wait(until: "2026-11-10T09:30")
        let report = try report(rules: EntitlementRules(apps: [], leeway: 0, environment: .production))
        #expect(published(report) == "other_rules")
        #expect(
            report["published"]?["differs"]
                == .array(["entitlements", "state", "reason", "access", "accessUntil"].map { .string($0) }))
    }

    @Test func `shows which members of the value differ`() throws {
        try desk.work()
        let old = try #require(try desk.simulation.read("appstore.production.entitlements").last)
        let forged = old.valueText.replacing(#""price":9990"#, with: #""price":1"#)
        let writer = try desk.simulation.log.openWriter(
            WriterOptions(name: "forger", topics: ["appstore.production.entitlements"]))
        let batch = OutputBatch()
        batch.append(
            topic: 0, partition: old.partition, timestamp: old.timestamp, key: old.key, value: Array(forged.utf8),
            headers: old.headers)
        _ = try writer.append(batch, by: Deadline(after: patience))
        let report = try report()
        #expect(published(report) == "different")
        #expect(report["published"]?["differs"] == .array([.string("price")]))
    }

    @Test func `is told for another instant with what is known now`() throws {
        try renew()
        try desk.wait(until: "2026-11-22")
        let then = try report(["--at", "2026-10-20"])
        #expect(then["at"]?.integer == at("2026-10-20"))
        #expect(then["why"]?["transactionId"]?.string == "1")
        #expect(published(then) == "same", "what is published is judged by the clock of the partition")
        let before = try desk.inspect(["subscription", Story.id, "--at", "2026-01-01"]).lines
        #expect(before.contains("it has not begun: it begins 2026-10-10 09:30"))
    }

    @Test func `tells in json since when its state has lasted`() throws {
        try renew()
        #expect(try report()["why"]?["stateSince"]?.integer == at(start))
        #expect(try report(["--at", "2026-12-20"])["why"]?["stateSince"]?.integer == at("2026-12-10T10:30"))
        #expect(try report(["--at", "2026-01-01"])["why"]?["stateSince"] == .null)
    }

    @Test func `says what happens next if nothing more is told`() throws {
        try desk.wait(until: "2026-10-20")
        let next = try #require(try report()["next"]?.array)
        #expect(next.map { $0["at"]?.integer } == [at("2026-11-10T10:30")])
        #expect(next.first?["state"]?.string == "expired")
        #expect(next.first?["access"]?.bool == false)
    }

    @Test func `lists every notification, repetitions too, and names the one that decides`() throws {
        try desk.tell(
            Story.id,
            told("SUBSCRIBED", "INITIAL_BUY", on: start, bought("1", start, to: end), renewal(1, at: end)))
        try renew()
        try desk.work()
        let report = try report()
        let told = try #require(report["notifications"]?.array)
        #expect(told.map { $0["offset"]?.integer } == [0, 1, 2])
        #expect(told.map { $0["type"]?.string } == ["SUBSCRIBED", "SUBSCRIBED", "DID_RENEW"])
        #expect(report["why"]?["offset"]?.integer == 2)
        #expect(report["why"]?["rule"]?.string == "paid")
    }

    @Test func `is not mixed with others of its partition, nor stopped by what cannot be read`() throws {
        let partition = InspectDesk.partition(of: Story.id)
        let neighbour = try #require((1...).lazy.map { "\($0)" }.first { InspectDesk.partition(of: $0) == partition })
        let bought = told("SUBSCRIBED", on: start, bought("9", start, to: end)).value
        let time = at("2026-10-12")
        try desk.put(neighbour, bought, at: time, partition: partition)
        // A key with the same beginning, another type, a later schema, no JSON, nothing.
        try desk.put(Story.id + "0", bought, at: time, partition: partition)
        try desk.put(Story.id, bought, at: time, partition: partition, type: "rumour", schema: "rumour/1")
        try desk.put(Story.id, bought, at: time, partition: partition, schema: "notification/2")
        try desk.put(Story.id, "{", at: time, partition: partition)
        try desk.simulation.feed(
            partition: partition, key: Array(Story.id.utf8), value: nil,
            headers: [RecordHeader("type", "notification")], timestamp: time)
        // One of a subscription, and one about nothing.
        try desk.put(Story.id, "[]", at: time, partition: partition)
        let report = try report()
        #expect(report["purchases"]?.array?.count == 1)
        #expect(report["unreadableNotifications"]?.integer == 3)
        #expect(report["notifications"]?.array?.count == 2)
    }

    /// Answering without a record that only a later build understands may be wrong: the person who asks must know.
    @Test(arguments: [
        (TopicID.notifications, "notification"), (.entitlements, "entitlement"), (.accounts, "account"),
    ])
    func `says that it is too old for a record of a later build`(_ topic: TopicID, _ type: String) throws {
        try desk.tell(Story.id, told("SUBSCRIBED", on: start, bought("9", start, to: end)))
        try desk.work()
        let key = topic == .accounts ? "\(InspectDesk.token)|\(Story.id)" : Story.id
        let home = InspectDesk.partition(of: topic == .accounts ? InspectDesk.token : Story.id)
        let name = desk.names.topic(topic)
        let writer = try desk.simulation.log.openWriter(WriterOptions(name: "later", topics: [name]))
        let arguments = topic == .accounts ? ["account", InspectDesk.token] : ["subscription", Story.id]
        for version in 1...2 {
            let batch = OutputBatch()
            batch.append(
                topic: 0, partition: home, timestamp: at("2026-10-12"), key: Array(key.utf8),
                value: Array("{\"v\":\(version)}".utf8),
                headers: [RecordHeader("schema", "\(type)/\(version)")])
            _ = try writer.append(batch, by: Deadline(after: .seconds(30)))
            let answer = try desk.inspect(arguments)
            #expect(answer.code == .done)
            let words =
                "perennial inspect: \(name): a record has the schema \(type)/2, and this build reads up to 1: upgrade the "
                + "perennial that reads it"
            #expect(answer.messages.contains(words) == (version == 2), "\(answer.messages)")
        }
        // The value of a later build is not compared as if this build could read it.
        if topic == .entitlements { #expect(try published(report()) == "absent") }
    }

    @Test func `with a lapse that is shorter than a column shows it`() throws {
        let id = "2000000000000079"
        try desk.tell(
            id, told("SUBSCRIBED", on: "2025-01-01", bought("1", "2025-01-01", to: "2025-06-10T12:00")),
            told("SUBSCRIBED", on: "2025-06-10T12:01", bought("2", "2025-06-10T12:01", to: "2026-01-01")))
        try desk.work()
        let lines = try desk.inspect(["subscription", id, "--at", "2025-12-31"]).lines.split(separator: "\n")
        #expect(lines.contains { $0.contains("-- lapse of 60 s --") })
        let graphic = try #require(lines.first { $0.contains("###") })
        #expect(graphic.filter { $0 == "+" }.count == 1 && graphic.filter { $0 == "#" }.count == 63)
        #expect(lines.contains { $0.contains("+ less than a column of either") })
    }

    /// The log is kept for ever and fills with ticks: inspect must not have to read years of them.
    @Test func `is read from when it was bought, and not from the beginning of the log`() throws {
        let id = "2000000000000079"
        let first = ("originalPurchaseDate", "\(at("2025-03-01"))")
        // The record belongs to no purchase, and every reader that reaches it reports it.
        func putNonsense(on day: String) throws {
            try desk.put(id, "{}", at: at(day), partition: InspectDesk.partition(of: id))
        }
        // It is older than the first purchase, so it is not reached.
        try putNonsense(on: "2025-01-01")
        try desk.tell(
            id, told("SUBSCRIBED", on: "2025-03-01", bought("1", "2025-03-01", to: "2025-04-01").with(first)),
            told(
                "REFUND", on: "2025-03-02",
                bought("1", "2025-03-01", to: "2025-04-01").with(first, ("revocationDate", "\(at("2025-03-02"))"))))
        try putNonsense(on: "2025-03-05")
        try desk.tell(
            id, told("SUBSCRIBED", on: "2026-11-01", bought("2", "2026-11-01", to: "2026-12-01").with(first)))
        try desk.work()
        let json = try JSONValue.read(Array(try desk.inspect(["subscription", id, "--format", "json"]).lines.utf8))
        #expect(json["entitlement"]?["runs"]?.array?.first?["start"]?.integer == at("2026-11-01"))
        // Includes what came before the first period that counts.
        #expect(json["notifications"]?.array?.count == 4, "\(json)")
    }

    @Test func `with more notifications than are kept is computed from all of them`() throws {
        try renew()
        for day in 11...19 {
            try desk.tell(
                Story.id, told("PRICE_CHANGE", on: "2026-11-\(day)", nil, renewal(0, at: "2026-12-10T09:30")))
        }
        let topic = "appstore.production.notifications"
        let reader = try desk.simulation.log.openReader(ReaderOptions(name: "r", group: "g", topics: [topic]))
        let partition = TopicPartition(topic, InspectDesk.partition(of: Story.id))
        let all = SubscriptionFold(key: Array(Story.id.utf8))
        let few = SubscriptionFold(key: Array(Story.id.utf8), limit: 2)
        try PartitionScan(reader: reader, partition: partition).run {
            all.add($0)
            few.add($0)
        }
        #expect(all.count == 11 && few.count == 11)
        #expect(all.told.count == 11 && few.told.count == 3)
        #expect(few.told.map(\.offset) == all.told.suffix(3).map(\.offset))
        #expect(few.facts() == all.facts())
    }

    @Test func `without a purchase is told with its notifications`() throws {
        let id = "2000000000000077"
        try desk.tell(id, told("CONSUMPTION_REQUEST", on: start))
        try desk.work()
        let answer = try desk.inspect(["subscription", id])
        #expect(answer.code == .done)
        #expect(answer.lines.contains("UNKNOWN: its notifications contain no purchase"))
        #expect(answer.lines.contains("CONSUMPTION_REQUEST"))
        #expect(answer.lines.contains("nothing in entitlements, as it should be"))
        let json = try JSONValue.read(Array(try desk.inspect(["subscription", id, "--format", "json"]).lines.utf8))
        #expect(json["entitlement"] == .null && json["why"] == .null)
    }

    @Test func `with dates at the ends of time is shown all the same`() throws {
        let id = "2000000000000078"
        func wild(_ id: String, _ from: Int64, _ to: Int64) -> Payload {
            bought(id, "2026-01-01", to: nil).with(("purchaseDate", "\(from)"), ("expiresDate", "\(to)"))
        }
        try desk.tell(
            id, told("SUBSCRIBED", on: start, wild("1", .min, -1)),
            told("DID_RENEW", on: start, wild("2", .max - 1, .max)),
            told(
                "DID_RENEW", on: start,
                bought("3", start, to: end).with(("productId", "'\\u001b[2J'"), ("price", "\(Int64.min)"))))
        try desk.work()
        let answer = try desk.inspect(["subscription", id, "--all"])
        #expect(answer.code == .done)
        #expect(answer.lines.contains("\(Int64.max - 1) ms"))
        #expect(!answer.lines.contains("\u{1b}"))
        #expect(answer.lines.split(separator: "\n").allSatisfy { $0.count <= 80 })
        #expect(try desk.inspect(["subscription", id, "--format", "json"]).code == .done)
    }

    @Test func `tells that the clock of the partition stands`() throws {
        try desk.work()
        let late = try desk.inspect(["subscription", Story.id], now: "2026-10-12T09:30")
        #expect(card(late).contains("that is 47 h ago: is a clock running?"))
    }

    @Test func `tells that apps is not set`() throws {
        let answer = try desk.inspect(["subscription", Story.id]) { $0.hasApps = false }
        #expect(answer.messages.contains { $0.contains("apps is not set") })
    }

    @Test func `is not looked for where its key would not be`() throws {
        let counted = try desk.inspect(["subscription", Story.id], partitions: 12)
        #expect(counted.code == .wrongUsage)
        #expect(
            counted.messages.first?.hasSuffix(
                "Set it back if it was changed, or set topic.prefix to the prefix of topics with 12 partitions")
                == true)
        let missing = try desk.inspect(["subscription", Story.id], without: .notifications)
        #expect(missing.code == .wrongUsage)
        #expect(missing.messages.first?.contains("does not exist: check topic.prefix") == true)
    }
}
