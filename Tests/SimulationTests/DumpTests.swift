import Simulation
import Testing
@Suite struct Dump {
    @Test func dump() throws {
        for story in Story.allCases {
            for sandbox in [false, true] {
            let s = try simulation(of: story, sandbox: sandbox)
            let (n, t) = s.life(of: 0)
            print("=== \(story) sandbox \(sandbox): \(n.count)")
            for x in n { print((x.at - n[0].at)/60000, x.kind, x.status ?? -1) }
            for l in t.lines where !String(decoding: l, as: UTF8.self).contains("did") { print(String(decoding: l, as: UTF8.self)) }
            }
        }
        for story in [Story.steady, .commitmentRecovered, .graceRecovered, .nonRenewing, .massExtension, .consentRescinded] {
            let s = try simulation(of: story)
            for x in s.life(of: 1).notifications.suffix(2) { print(x.kind); for b in [x.transaction, x.renewalInfo, x.appTransaction] { if let b { print(String(decoding: b, as: UTF8.self)) } } }
        }
    }
}
