// Durations as people write them.

import Platform

/// `30s`, `10m`, `2h`; nil for anything else, for zero and for more than a day.
package func shortDuration(_ text: String) -> Duration? {
    let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600]
    guard let last = text.last, let unit = units[last],
        let number = decimal(text.dropLast(), upTo: 24 * 3600 / unit), number > 0
    else { return nil }
    return .seconds(number * unit)
}
