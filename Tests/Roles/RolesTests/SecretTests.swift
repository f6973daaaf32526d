import Configuration
import KafkaTestKit
import Platform
import Settings
import Testing

@testable import CommandLine
@testable import Roles

/// A message that contains a secret puts it into logs for good. This must not happen, whatever is wrong and wherever the secret
/// was given.
@Suite struct `The value of a secret` {
    /// Base64 as in the middle of a private key, long enough for a token. No message can contain it by chance.
    private static let value = "MIGTAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBHkwdwIBAQQgSECRET"

    private static let keys =
        SettingTable.definitions.filter(\.isSecret).map(\.key)
        + [
            "sasl.password", "ssl.key.pem", "ssl.key.password", "ssl.keystore.password",
            "sasl.oauthbearer.client.secret", "consumer.sasl.password",
        ].map { "kafka.\($0)" }

    /// The secret alone, and with text that somebody may have pasted with it.
    private static let spellings = [
        value, value + "\n", "a" + value, "\u{7}" + value, value + "\n" + value, value + " # comment",
        "\"" + value + "\"",
        "-----BEGIN PRIVATE KEY-----\n" + value, String(repeating: value, count: 300),
    ]

    private func says(_ arguments: [String], _ environment: [(name: String, value: String)] = []) -> String {
        let heard = Recorder()
        _ = Program.standard.run(arguments, environment: environment, output: heard.output)
        return heard.data + heard.messages.joined(separator: "\n")
    }

    @Test(arguments: keys)
    func `is in no message of a command that reads it`(_ key: String) throws {
        let folder = try ScratchDirectory("secrets")
        let variable = "PERENNIAL_" + key.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
        var messages = 0
        for (index, spelling) in Self.spellings.enumerated() {
            let file = try folder.write(spelling, to: "value-\(index)")
            let settings = try folder.write("\(key) = \(spelling)\n", to: "settings-\(index)")
            for command in ["check", "ingest", "api", "consumption"] {
                // A second fault, so that no command starts.
                let wrong = [command, "--partitions", "none"]
                for words in [
                    says(wrong + ["--\(key)", spelling]), says(wrong + ["--\(key)=\(spelling)"]),
                    says(wrong, [(variable, spelling)]), says(wrong + ["--\(key)", "file:\(file)"]),
                    says(wrong + ["--config", settings]),
                ] {
                    messages += words.isEmpty ? 0 : 1
                    #expect(!words.contains(Self.value), "\(command): \(words)")
                }
            }
        }
        #expect(messages == Self.spellings.count * 20)
    }

    /// Only the middle of its three lines was copied.
    @Test func `is not shown where a key without its frame is taken for a path`() {
        for command in ["check", "consumption"] {
            let apple = ["--apple.issuer.id", "i", "--apple.key.id", "k", "--apple.key", Self.value]
            let words = says([command] + apple)
            #expect(words.contains("apple.key: it names no existing file"), "\(words)")
            #expect(!words.contains(Self.value.prefix(20)), "\(words)")
        }
    }
}
