// What a promotion of `churn` moves: the cells whose counts differ. Their states are moved unchanged.

public import Runtime

public struct ChurnPromotion: PromotionRules {
    private static let cells = 0

    public let values = ChurnPromotion.cells
    public let compacted = [ChurnPromotion.cells]

    public init() {}

    public func replacement(of key: [UInt8], live: [UInt8]?, shadow: [UInt8]?) -> [PromotedRecord] {
        guard live != nil || shadow != nil else { return [] }
        if let live, let shadow, Self.counts(live).elementsEqual(Self.counts(shadow)) { return [] }
        return [PromotedRecord(output: Self.cells, key: key, value: shadow)]
    }

    public func state(_ state: [UInt8], format: UInt8, of key: [UInt8], after value: [UInt8]?) -> [UInt8] { state }

    /// A cell without `asOf` and `offset`, which are its last members.
    private static func counts(_ value: [UInt8]) -> ArraySlice<UInt8> {
        let name = Array(#","asOf":"#.utf8)
        var place = value.count - name.count
        while place >= 0 {
            if value[place..<(place + name.count)].elementsEqual(name) { return value[..<place] }
            place -= 1
        }
        return value[...]
    }
}
