// Finds a transaction from its number alone: an API that knows every purchase need not store any.

internal import Contract

extension Simulation {
    /// nil: no purchase and no app transaction of this simulation has this id.
    public func find(_ id: String) -> FoundTransaction? {
        guard let number = Int64(id), String(number) == id else { return nil }
        let numbers = 0..<1_000_000_000 as Range<Int64>
        if numbers.contains(number - Telling.firstAppTransactionId) {
            let owner = Telling.owner(of: number - Telling.firstAppTransactionId, configuration.seed)
            return owner.subscriber < configuration.subscribers ? .appTransaction : nil
        }
        guard numbers.contains(number - Telling.firstId) else { return nil }
        let owner = Telling.owner(of: number - Telling.firstId, configuration.seed)
        guard owner.subscriber < configuration.subscribers else { return nil }
        // The last notification about it decides: a purchase may move to Advanced Commerce later.
        return life(of: owner.subscriber).notifications.lazy.compactMap(\.knownTransaction)
            .last { $0.transactionId == id }.map(FoundTransaction.transaction)
    }
}

extension SimulatedNotification {
    /// nil if it is not about a purchase.
    var knownTransaction: KnownTransaction? {
        guard case .data(let transaction?, _, _, _) = content else { return nil }
        return KnownTransaction(
            transactionId: String(transaction.id), originalTransactionId: String(transaction.original),
            bundleId: bundleId, environment: environment, type: transaction.product.kind.rawValue,
            isFamilyShared: customer.isFamilyMember, isAdvancedCommerce: transaction.isAdvancedCommerce)
    }
}
