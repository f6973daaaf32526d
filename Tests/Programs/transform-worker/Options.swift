struct WorkerOptions: Sendable {
    var bootstrap = ""
    var group = ""
    var slot = "0"
    var inputs: [String] = []
    var output = ""
    /// Static membership: a member that is back within the session timeout causes no rebalance.
    var hasInstance = false
    /// Sends one transaction's records and then waits to be killed, without committing.
    var leavesOpen = false
    /// Most records of one transaction.
    var recordsPerCommit = 200

    init?(arguments: [String]) {
        var rest = arguments[...]
        while let name = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            switch name {
            case "--bootstrap": bootstrap = value
            case "--group": group = value
            case "--slot": slot = value
            case "--input": inputs = value.split(separator: ",").map(String.init)
            case "--output": output = value
            case "--instance": hasInstance = value == "yes"
            case "--leave-open": leavesOpen = value == "yes"
            case "--records": recordsPerCommit = Int(value) ?? recordsPerCommit
            default: return nil
            }
        }
        if bootstrap.isEmpty || group.isEmpty || inputs.isEmpty || output.isEmpty { return nil }
    }
}
