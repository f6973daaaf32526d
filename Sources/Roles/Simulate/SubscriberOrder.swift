// Whose turn it is: a subscriber's posts one after the other, everybody's side by side.

/// Keeps back a post while an earlier one of the same subscriber is on its first way: over two connections the later might
/// arrive first, and what was asked to be in order would not be.
///
/// What was answered otherwise than Apple wants no longer keeps anything back, as with Apple.
struct SubscriberOrder {
    /// Posts of those whose turn has not come, a few hundred bytes each. When there are so many, nothing new is looked at.
    private static let maxKept = 4096

    /// Who has a post on its first way, and what is kept back until its answer.
    private var underWay: [Int: Waiting] = [:]
    /// Their turn has come, in this order.
    private var ready = Waiting()
    private var kept = 0

    var hasRoom: Bool { kept < Self.maxKept }
    var isEmpty: Bool { kept == 0 }

    /// true: it may be sent now. Otherwise it is kept until `nextReady` gives it back.
    mutating func mayStart(_ parcel: Parcel) -> Bool {
        guard underWay[parcel.subscriber] != nil else {
            underWay[parcel.subscriber] = Waiting()
            return true
        }
        underWay[parcel.subscriber]?.append(parcel)
        kept += 1
        return false
    }

    /// The first send of a post of that subscriber has its answer.
    mutating func ended(_ subscriber: Int) {
        // Whoever has another post keeps its turn until that one, too, has its answer.
        if let next = underWay[subscriber]?.popFirst() {
            ready.append(next)
        } else {
            underWay[subscriber] = nil
        }
    }

    /// To be sent now.
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
                // Half of it used up: each is moved once on average.
                if head * 2 >= parcels.count {
                    parcels.removeFirst(head)
                    head = 0
                }
            }
            return parcels[head]
        }
    }
}
