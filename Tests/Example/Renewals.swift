public import Contract
import JSON
public import Log
public import Runtime

/// Counts renewals per product and day (of UTC): one record for each cell that changes.
public final class Renewals: Processor {
    public let definition: WorkerDefinition
    // Only one thread uses an instance. Outputs must not depend on what it keeps between records; a parser is fine.
    private var json = JSONDocument()

    public init(_ names: Names, partitions: Int32) {
        let topic = "\(names.prefix).\(names.environment.rawValue)"
        definition = WorkerDefinition(
            name: "renewals", group: "\(topic).renewals",
            events: InputTopic(names.topic(.notifications), kinds: [.init("notification", version: 1)]),
            outputs: [OutputTopic("\(topic).renewals", schema: "renewals/1")],
            changelog: "\(topic).renewals.changelog", deadLetters: "\(topic).renewals.dead-letters",
            partitions: partitions, app: "renewals/1")
    }

    public func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        guard let key = record.key, let value = record.value else { throw ProcessFailure("no_notification") }
        do throws(JSONFault) { try json.read(value) } catch { throw ProcessFailure("json", "\(error)") }
        guard text("notificationType", of: json.root) == "DID_RENEW" else { return }
        guard let transaction = json.member("transaction", of: json.root)?.value,
            let product = text("productId", of: transaction),
            let bought = json.member("purchaseDate", of: transaction).flatMap({ json.integer($0.value) })
        else { throw ProcessFailure("no_transaction", "a renewal needs productId and purchaseDate") }

        // A notification may come twice. The state of the subscription is the newest renewal that was counted.
        let subscription = try turn.state(key)
        if let counted = subscription.value.flatMap({ Int64(String(decoding: $0, as: UTF8.self)) }), counted >= bought {
            return
        }
        subscription.put(Array("\(bought)".utf8).span)
        // A subscription that has not renewed for 400 days is deleted, by the clock of the log.
        subscription.setTimer(0, due: turn.clock + 400 * 86_400_000)

        let name = Array("\(product)|\(bought / 86_400_000)".utf8)
        let cell = try turn.state(name.span)
        let count = (cell.value.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0) + 1
        cell.put(Array("\(count)".utf8).span)
        var told = JSONWriter()
        told.object { told in
            told.member("v", 1)
            told.member("productId", product)
            told.member("day", bought / 86_400_000)
            told.member("renewals", count)
        }
        turn.emit(0, key: name.span, value: told.bytes.span)
    }

    public func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        try turn.state(timer.key.span).delete()
    }

    private func text(_ name: StaticString, of object: JSONDocument.Value) -> String? {
        json.member(name, of: object).flatMap { json.text($0.value) }
    }
}
