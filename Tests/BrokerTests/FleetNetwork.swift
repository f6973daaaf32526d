// Hosts that a test can cut off: network namespaces on one bridge.

import Foundation
import Glibc
import KafkaTestKit
import Platform
import Testing

/// The bridge is in the namespace of the test, which Tests/fleet.sh makes. With the test everything of it is gone.
struct FleetNetwork {
    /// What does not reach its target any more.
    enum Trouble: Sendable {
        /// Both directions.
        case cut
        /// What is sent to the host.
        case deaf
        /// What the host sends.
        case mute
        case slow
    }

    private static let prefix = "10.77.0"
    static let ownAddress = "\(prefix).1"

    /// How a slow network is made: netem delays every packet. A kernel without netem can only limit the rate; then packets wait
    /// in a queue.
    private let slowness: String
    let words: String

    /// - Parameter hosts: the last numbers of their addresses.
    static func make(hosts: [Int]) async throws -> FleetNetwork {
        // Otherwise this would change the network of a machine.
        let routes = try await shell("ip route")
        try #require(routes.isEmpty, "this is no network namespace of its own: use make fleet")
        try await shell(
            "ip link set lo up; ip link add bridge0 type bridge; ip addr add \(ownAddress)/24 dev bridge0; ip link set bridge0 up"
        )
        for host in hosts {
            let inside = entry(host).joined(separator: " ")
            try await shell(
                """
                ip netns add h\(host)
                ip link add v\(host) type veth peer name eth0 netns h\(host)
                ip link set v\(host) master bridge0
                ip link set v\(host) up
                \(inside) ip addr add \(prefix).\(host)/24 dev eth0
                \(inside) ip link set eth0 up
                \(inside) ip link set lo up
                """)
        }
        // Only the kernel can say whether it has netem.
        let first = "dev v\(hosts[0]) root"
        let hasNetem = try await shell(
            """
            tc qdisc replace \(first) netem delay 1ms 2>/dev/null && echo yes || true
            tc qdisc del \(first) 2>/dev/null || true
            """)
        return hasNetem == "yes"
            ? FleetNetwork(slowness: "netem delay 100ms", words: "100 ms more in each direction")
            : FleetNetwork(
                slowness: "tbf rate 8mbit burst 32kb latency 400ms",
                words: "8 Mbit/s with a queue of up to 400 ms, because this kernel has no netem")
    }

    private init(slowness: String, words: String) {
        (self.slowness, self.words) = (slowness, words)
    }

    static func host(_ number: Int) -> TestHost {
        TestHost(address: "\(prefix).\(number)", entry: entry(number))
    }

    private static func entry(_ host: Int) -> [String] { ["nsenter", "--net=/run/netns/h\(host)"] }

    func begin(_ trouble: Trouble, of host: Int) async throws {
        // On the bridge a queue holds what is sent to the host, and inside of the host what it sends.
        let (bridge, inside) = (
            "dev v\(host) root", "\(Self.entry(host).joined(separator: " ")) tc qdisc replace dev eth0 root"
        )
        switch trouble {
        case .cut: try await Self.shell("ip link set v\(host) down")
        case .deaf: try await Self.shell("tc qdisc replace \(bridge) blackhole")
        case .mute: try await Self.shell("\(inside) blackhole")
        case .slow: try await Self.shell("tc qdisc replace \(bridge) \(slowness); \(inside) \(slowness)")
        }
    }

    func end(_ trouble: Trouble, of host: Int) async throws {
        let (bridge, inside) = (
            "tc qdisc del dev v\(host) root", "\(Self.entry(host).joined(separator: " ")) tc qdisc del dev eth0 root"
        )
        switch trouble {
        case .cut: try await Self.shell("ip link set v\(host) up")
        case .deaf: try await Self.shell(bridge)
        case .mute: try await Self.shell(inside)
        case .slow: try await Self.shell("\(bridge); \(inside)")
        }
    }

    // MARK: Whether it does what it says

    /// Without this a run could pass because nothing was ever cut off.
    func check(_ host: Int) async throws {
        try #require(try await answers(host), "host \(host) cannot be reached")
        for (trouble, hears) in [(Trouble.cut, false), (.deaf, false), (.mute, true)] {
            try await begin(trouble, of: host)
            let before = try await packetsReceived(by: host)
            let isAnswered = try await answers(host)
            let hasHeard = try await packetsReceived(by: host) > before
            try await end(trouble, of: host)
            #expect(!isAnswered, "\(trouble): host \(host) answers")
            #expect(hasHeard == hears, "\(trouble): host \(host) hears: \(hasHeard)")
            try await waitUntil("host \(host) can be reached again") { try await answers(host) }
        }
    }

    /// Nobody listens at this port: a host that can be reached refuses the connection.
    private func answers(_ host: Int) async throws -> Bool {
        let address = Self.host(host).address
        return try await onOwnThread("probe") {
            do throws(SystemFailure) {
                _ = try Loopback.connect(address: address, port: 9, limit: .milliseconds(500))
                return true
            } catch {
                return error.code == ECONNREFUSED
            }
        }
    }

    private func packetsReceived(by host: Int) async throws -> Int {
        let inside = Self.entry(host).joined(separator: " ")
        let line = try await Self.shell("\(inside) cat /proc/net/dev | grep eth0:")
        // The name, bytes, packets.
        return try #require(line.split(separator: " ").dropFirst(2).first.flatMap { Int($0) }, "\(line)")
    }

    @discardableResult
    private static func shell(_ script: String) async throws -> String {
        let result = try await run("sh", ["-ec", script])
        try #require(result.code == 0, "\(script): \(result.words)")
        return result.standardOutput.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
