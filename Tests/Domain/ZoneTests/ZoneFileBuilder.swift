/// Writes TZif files, valid ones and invalid ones.
struct ZoneFileBuilder {
    var magic = "TZif"
    var version: Character = "2"
    var transitions: [(second: Int64, type: UInt8)] = []
    /// Seconds, is summer, index of the abbreviation.
    var types: [(offset: Int32, isSummer: UInt8, name: UInt8)] = [(0, 0, 0)]
    var abbreviations: [UInt8] = Array("UTC\0".utf8)
    var leapSeconds = 0
    var utIndicators = 0
    var standardIndicators = 0
    var footer = "UTC0"

    var bytes: [UInt8] {
        if version == "1" { return block(timeBytes: 4) }
        var first = ZoneFileBuilder()
        (first.magic, first.version) = (magic, version)
        return first.block(timeBytes: 4) + block(timeBytes: 8) + "\n\(footer)\n".utf8
    }

    private func block(timeBytes: Int) -> [UInt8] {
        var bytes = Array(magic.utf8) + [version == "1" ? 0 : version.asciiValue!] + [UInt8](repeating: 0, count: 15)
        let counts = [
            utIndicators, standardIndicators, leapSeconds, transitions.count, types.count, abbreviations.count,
        ]
        for count in counts { bytes += big(Int64(count), 4) }
        for transition in transitions { bytes += big(transition.second, timeBytes) }
        bytes += transitions.map(\.type)
        for type in types { bytes += big(Int64(type.offset), 4) + [type.isSummer, type.name] }
        bytes += abbreviations
        bytes += [UInt8](repeating: 0, count: leapSeconds * (timeBytes + 4) + standardIndicators + utIndicators)
        return bytes
    }

    private func big(_ value: Int64, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }
}
