// Stops a worker that refuses too much: a bad build must not empty a topic into the dead letters.

/// Looks at the last thousand records of one topic of one partition.
struct Breaker {
    static let window = 1000
    static let limit = 100

    /// Whether each of the last records went to the dead letters; a ring.
    private var letters: [Bool] = []
    private var place = 0
    private var count = 0

    /// What becomes of the next record. False: it would be one too many, and has to wait for a person.
    mutating func allowsLetter() -> Bool {
        guard count < Self.limit else { return false }
        note(true)
        return true
    }

    mutating func processed() {
        // Nothing to forget: most workers never see a letter.
        if count > 0 { note(false) }
    }

    private mutating func note(_ isLetter: Bool) {
        if letters.count < Self.window {
            letters.append(isLetter)
        } else {
            if letters[place] { count -= 1 }
            letters[place] = isLetter
            place = (place + 1) % Self.window
        }
        if isLetter { count += 1 }
        if count == 0 {
            letters.removeAll(keepingCapacity: true)
            place = 0
        }
    }
}
