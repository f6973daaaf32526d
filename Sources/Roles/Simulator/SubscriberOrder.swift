// Orders posts: those of one subscriber one after another, those of different subscribers in parallel.

/// Holds back a post while an earlier post of the same subscriber is in flight for the first time: over two connections the later
/// one might arrive first.
///
/// A post that waits for a retry does not hold back others, as with Apple.
struct SubscriberOrder {
    /// Posts that are held back, a few hundred bytes each. At this number no new post is taken.
    private static let maxKept = 4096

    /// Subscribers with a post in flight for the first time, and the posts that are held back until its answer.
    private var underWay: [Int: Waiting] = [:]
    /// Posts that may be sent now, in this order.
    private var ready = Waiting()
    private var kept = 0

    var hasRoom: Bool { kept < Self.maxKept }
    var isEmpty: Bool { kept == 0 }

    /// true: it may be sent now. Otherwise it is held back until `nextReady` returns it.
    mutating func mayStart(_ parcel: Parcel) -> Bool {
        guard underWay[parcel.subscriber] != nil else {
            underWay[parcel.subscriber] = Waiting()
            return true
        }
        underWay[parcel.subscriber]?.append(parcel)
        kept += 1
        return false
    }

    /// Reports the first answer to a post of that subscriber.
    mutating func ended(_ subscriber: Int) {
        // If the subscriber has another post, that one is sent next.
        if let next = underWay[subscriber]?.popFirst() {
            ready.append(next)
        } else {
            underWay[subscriber] = nil
        }
    }

    /// Returns a post to send now.
    mutating func nextReady() -> Parcel? {
        guard let parcel = ready.popFirst() else { return nil }
        kept -= 1
        return parcel
    }

    private struct Waiting {
        private var parcels: [Parcel] = []
        private var head = 0

        mutating func append(_ parcel: Parcel) { parcels.append(parcel) }

        mutating func popFirst() -> Parcel? {
            guard head < parcels.count else { return nil }
            defer {
                head += 1
                // Compacts when half is used, so that each entry is moved once on average.
                if head * 2 >= parcels.count {
                    parcels.removeFirst(head)
                    head = 0
                }
            }
            return parcels[head]
        }
    }
}
