import Log
import MemoryLog
import Synchronization

/// One fault after the other, each at the next step of its kind.
final class Planned: LogFaults {
    private let plan = Mutex<[(step: LogStep, fault: InjectedFault)]>([])

    func next(_ step: LogStep, _ fault: InjectedFault) { plan.withLock { $0.append((step, fault)) } }

    func fault(at step: LogStep, of identity: String) -> InjectedFault? {
        plan.withLock { plan in
            guard let index = plan.firstIndex(where: { $0.step == step }) else { return nil }
            return plan.remove(at: index).fault
        }
    }
}
