// What a domain writes of many lives, as one hash: whether this version writes what the versions before it wrote.

import Crypto
import Glibc

/// Everything that was written, in its order. Values, events and kept bytes are compared by users, by replays and by stores, so they
/// change only if somebody wants it.
public struct Writings {
    private var hash: SHA256.Prefix
    /// Appends what was written to this file. Two such files, of two commits, show the difference.
    private let file = getenv("PERENNIAL_TEST_WRITINGS").flatMap { fopen($0, "a") }

    public init() {
        let nothing: [UInt8] = []
        hash = SHA256.Prefix(nothing.span)
    }

    /// Adds what was written at once, each with its length.
    public mutating func add(_ parts: [[UInt8]]) {
        for part in parts {
            let count = Array("\(part.count) ".utf8)
            hash.add(count.span)
            hash.add(part.span)
            if let file { fwrite(part + [0x0A], 1, part.count + 1, file) }
        }
    }

    /// nil: the hash is the known one of this name. Closes the file.
    public func fault(_ name: String, of known: [String: String]) -> String? {
        if let file { fclose(file) }
        let found = hexadecimal(Array(hash.digest().prefix(8)))
        if known[name] == found { return nil }
        return """
            another hash is known of "\(name)": \(found). So something is written in another way than before. If a rule, a format or \
            the lives have changed on purpose, write this hash into KnownWritings.swift. To see the difference, run this test \
            here and at the commit before with PERENNIAL_TEST_WRITINGS=FILE, and compare the two files with diff -a.
            """
    }
}
