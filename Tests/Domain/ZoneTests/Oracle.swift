import Foundation

@testable import Zone

let zoneFolder = "/usr/share/zoneinfo"

/// Every zone and every alias, from the list that comes with the data.
let zoneNames: [String] = {
    let list = (try? String(contentsOfFile: "\(zoneFolder)/tzdata.zi", encoding: .utf8)) ?? ""
    return list.split(separator: "\n").compactMap { line in
        let words = line.split(separator: " ")
        return switch words.first {
        case "Z": String(words[1])
        case "L": String(words[2])
        default: nil
        }
    }.sorted()
}()

/// Those that this machine has. From Debian 13 on, old names are in the package tzdata-legacy.
let installedZones = zoneNames.filter { FileManager.default.fileExists(atPath: "\(zoneFolder)/\($0)") }

func zoneFile(_ name: String) throws -> [UInt8] {
    try [UInt8](Data(contentsOf: URL(fileURLWithPath: "\(zoneFolder)/\(name)")))
}

/// SplitMix64: the same numbers on every machine.
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

extension Zone {
    /// Seconds by which local clocks are ahead of UTC.
    func offset(at instant: Int64) -> Int64 {
        offsets.milliseconds(at: min(max(instant, Self.earliest), Self.latest)) / 1000
    }
}
