// FUZZ_TARGET=name fuzz [libFuzzer's arguments], or: fuzz seeds FOLDER
//
// The target's name is not an argument, because libFuzzer starts itself again with its own arguments (to merge, or after a
// crash).

import CFuzzer
import Glibc

typealias Target = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

let targets: [(name: String, run: Target)] = [
    ("base64", base64), ("json", json), ("certificate", certificate), ("jws", jws), ("payload", payload),
    ("body", body), ("facts", facts), ("state", state), ("counts", counts), ("policy", policy),
    ("usage", usage), ("refunds", refunds), ("ocsp", ocsp), ("heads", heads),
]

if CommandLine.argc == 3, CommandLine.arguments[1] == "seeds" {
    writeSeeds(below: CommandLine.arguments[2])
    exit(0)
}
let name = getenv("FUZZ_TARGET").map { String(cString: $0) }
guard let target = targets.first(where: { $0.name == name }) else {
    print("FUZZ_TARGET names one of: \(targets.map(\.name).joined(separator: ", "))")
    exit(2)
}
var count = CommandLine.argc
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
exit(LLVMFuzzerRunDriver(&count, &arguments, target.run))
