import Foundation
import Synchronization
import Telemetry
import Testing

@Suite struct `The health of a process` {
    let health = Health()

    @Test func `is not ready until every condition has said so, and names those that have not`() {
        let kafka = health.condition("kafka", failing: "no broker answers")
        let store = health.condition("store")
        #expect(health.readiness.reasons.map(\.description) == ["kafka: no broker answers", "store: starting"])
        kafka.pass()
        #expect(health.readiness.reasons.map(\.description) == ["store: starting"])
        store.pass()
        #expect(health.readiness.isHealthy)
        kafka.fail("again")
        #expect(health.readiness.reasons.map(\.description) == ["kafka: again"])
    }

    @Test func `is alive while it waits for Kafka`() {
        _ = health.condition("kafka")
        #expect(health.liveness.isHealthy)
        #expect(!health.readiness.isHealthy)
    }

    @Test func `is not ready when it does not live`() {
        health.condition("watchdog", .liveness) { "no poll for 90 s" }
        #expect(health.liveness.reasons.map(\.description) == ["watchdog: no poll for 90 s"])
        #expect(!health.readiness.isHealthy)
    }

    @Test func `asks a check each time`() {
        let answer = Mutex<String?>(nil)
        health.condition("lag") { answer.withLock { $0 } }
        #expect(health.readiness.isHealthy)
        answer.withLock { $0 = "far behind" }
        #expect(!health.readiness.isHealthy)
    }

    @Test func `is told as JSON whatever the reasons are made of`() throws {
        #expect(String(decoding: health.readiness.json, as: UTF8.self) == #"{"status":"ok"}"#)
        _ = health.condition("a\"b", failing: "c\\d\n")
        _ = health.condition("e", failing: "f")
        let object = try #require(
            JSONSerialization.jsonObject(with: Data(health.readiness.json)) as? [String: Any])
        #expect(object["status"] as? String == "unavailable")
        #expect(
            object["reasons"] as? [[String: String]]
                == [["condition": "a\"b", "reason": "c\\d\n"], ["condition": "e", "reason": "f"]])
    }

    @Test func `traps on a second condition of one name`() async {
        await #expect(processExitsWith: .failure) {
            let health = Health()
            _ = health.condition("kafka")
            _ = health.condition("kafka")
        }
    }
}
