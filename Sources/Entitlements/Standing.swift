// An answer, and the purchase it rests on: what two of them are compared by.

/// How a subscription stands at an instant.
public struct Standing: Sendable {
    public let entitlement: Entitlement
    let row: Row
    /// The one before it in the order of rows.
    let rowBefore: Row?
}

extension Timeline {
    public func standing(at instant: Int64) -> Standing {
        let place = place(at: instant)
        return Standing(
            entitlement: entitlement(at: instant), row: rows[place], rowBefore: place > 0 ? rows[place - 1] : nil)
    }

    /// Whether Apple's `data.status` says the same of this instant; nil where it has no word for the state.
    public func agrees(withStatus status: Int64, at instant: Int64) -> Bool? {
        switch verdict(at: instant).state {
        case .active: status == 1
        case .expired: status == 2
        case .billingRetry: status == 3
        case .grace: status == 4
        case .revoked: status == 5
        case .superseded, .owned: nil
        }
    }
}
