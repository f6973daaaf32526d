enum ContractPlaceholder {}
