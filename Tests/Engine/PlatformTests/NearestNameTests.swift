import Testing

@testable import Platform

@Suite struct `The nearest name` {
    @Test(arguments: [
        ("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("kitten", "sitting", 3),
        ("ca", "abc", 3),
    ])
    func `takes the fewest slips of a finger`(_ from: String, _ to: String, _ distance: Int) {
        #expect(editDistance(Array(from.utf8), Array(to.utf8)) == distance)
        #expect(editDistance(Array(to.utf8), Array(from.utf8)) == distance)
    }

    @Test(arguments: [
        ("verzion", "version"), ("nmae", "name"), ("NAME", "name"), ("APPS", "apps"), ("listen.prot", "listen.port"),
        ("kafka.bootstrap.server", nil),
        ("yes", nil), ("dry-run", nil), ("nope", nil),
    ])
    func `is only one that is near`(_ name: String, _ nearest: String?) {
        let known = ["version", "name", "listen.port", "apps", "help", "copy", "topics"]
        #expect(nearestName(to: name, among: known) == nearest)
        #expect(nearestName(to: name, among: []) == nil)
    }

    @Test func `costs little even for a name of a megabyte`() {
        #expect(nearestName(to: String(repeating: "x", count: 1 << 20), among: ["a", "b"]) == nil)
    }
}
