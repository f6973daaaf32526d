import Configuration
import KafkaTestKit
import Platform
import Settings
import Testing

@testable import Roles

/// Whatever is wrong, and wherever it was given: a message that holds a secret puts it into logs for good.
@Suite struct `The value of a secret` {
    /// Base64 as the middle of a private key has it, long enough for a token. No message can hold it by chance.
    private static let value = "MIGTAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBHkwdwIBAQQgSECRET"

    private static let keys =
        SettingTable.definitions.filter(\.isSecret).map(\.key)
        + [
            "sasl.password", "ssl.key.pem", "ssl.key.password", "ssl.keystore.password",
            "sasl.oauthbearer.client.secret", "consumer.sasl.password",
        ].map { "kafka.\($0)" }

    /// Right as it is, and with what somebody may have pasted along.
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

    /// Of its three lines only the middle one was copied.
    @Test func `is not shown where a key without its frame is taken for a path`() {
        for command in ["check", "consumption"] {
            let apple = ["--apple.issuer.id", "i", "--apple.key.id", "k", "--apple.key", Self.value]
            let words = says([command] + apple)
            #expect(words.contains("apple.key: it names no file that is there"), "\(words)")
            #expect(!words.contains(Self.value.prefix(20)), "\(words)")
        }
    }
}
