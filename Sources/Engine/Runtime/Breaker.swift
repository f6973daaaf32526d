// Stops a partition whose records fail too often: a bad build must not send a whole topic to the dead letters.

/// Looks at the last thousand records of one topic of one partition.
struct Breaker {
    static let window = 1000
    static let limit = 100

    /// For each of the last records whether it went to the dead letters; a ring buffer.
    private var letters: [Bool] = []
    private var place = 0
    private var count = 0

    /// Whether the next record may go to the dead letters. False: the limit is reached, and the record waits for a
    /// person.
    mutating func allowsLetter() -> Bool {
        guard count < Self.limit else { return false }
        note(true)
        return true
    }

    mutating func processed() {
        // As long as no record has failed there is nothing to count: most workers never write a dead letter.
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
