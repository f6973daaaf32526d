// fuzz TARGET [libFuzzer's arguments], or: fuzz seeds FOLDER

import CFuzzer
import Glibc

typealias Target = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

let targets: [(name: String, run: Target)] = [
    ("base64", base64), ("json", json), ("certificate", certificate), ("jws", jws), ("payload", payload),
    ("body", body),
]

if CommandLine.argc == 3, CommandLine.arguments[1] == "seeds" {
    writeSeeds(below: CommandLine.arguments[2])
    exit(0)
}
guard CommandLine.argc > 1, let target = targets.first(where: { $0.name == CommandLine.arguments[1] }) else {
    print(
        "usage: fuzz TARGET [libFuzzer's arguments] | fuzz seeds FOLDER; targets: \(targets.map(\.name).joined(separator: ", "))"
    )
    exit(2)
}
// libFuzzer reads its own arguments from the second on.
var count = CommandLine.argc - 1
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv + 1
exit(LLVMFuzzerRunDriver(&count, &arguments, target.run))
