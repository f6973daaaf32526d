import Kafka
import Synchronization
import Telemetry
import Testing

@testable import Cluster

@Suite struct `The metrics of Kafka's clients` {
    private final class Hand: Sendable {
        private let time = Mutex(Duration.zero)
        var now: Duration { time.withLock { $0 } }
        func advance(by duration: Duration) { time.withLock { $0 += duration } }
    }

    private let metrics = Metrics(common: ["environment": "both"])
    private let hand = Hand()

    private func lines() -> [String] {
        String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") }
            .map { String($0.replacing(#"environment="both","#, with: "")) }
    }

    private func statistics(_ name: String, queued: Int, _ brokers: (node: Int, state: String)...) -> ClientEvent {
        let list = brokers.map { broker in
            #""b\#(broker.node)":{"name":"b","nodeid":\#(broker.node),"state":"\#(broker.state)"}"#
        }
        return .statistics(
            Array(#"{"name":"\#(name)","msg_cnt":\#(queued),"brokers":{\#(list.joined(separator: ","))}}"#.utf8))
    }

    @Test func `are there from when a client is made, and add up those of one id`() {
        let watch = ClientMetrics(metrics, elapsed: { [hand] in hand.now }).watch
        watch("a", nil)
        #expect(
            lines() == [
                #"perennial_kafka_brokers_connected{client="a"} 0"#, #"perennial_kafka_errors_total{client="a"} 0"#,
                #"perennial_kafka_queued_records{client="a"} 0"#,
            ])
        // The bootstrap address is not one of the cluster's brokers.
        watch("a", statistics("a#producer-1", queued: 7, (-1, "UP"), (1, "UP"), (2, "DOWN")))
        watch("a", statistics("a#consumer-2", queued: 0, (1, "UP"), (2, "UP")))
        watch("b", .error(.timedOut, detail: "no answer"))
        hand.advance(by: .seconds(40))
        watch("a", statistics("a#producer-1", queued: 5, (1, "UP")))
        watch("a", .statistics(Array("{".utf8)))
        #expect(
            lines() == [
                #"perennial_kafka_brokers_connected{client="a"} 3"#,
                #"perennial_kafka_brokers_connected{client="b"} 0"#,
                #"perennial_kafka_errors_total{client="a"} 0"#, #"perennial_kafka_errors_total{client="b"} 1"#,
                #"perennial_kafka_queued_records{client="a"} 5"#, #"perennial_kafka_queued_records{client="b"} 0"#,
            ])
        // A client that has stopped reporting is gone.
        hand.advance(by: .seconds(30))
        #expect(lines().first == #"perennial_kafka_brokers_connected{client="a"} 1"#)
    }
}
