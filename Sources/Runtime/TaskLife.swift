// The life of one partition in a worker, as a function.

/// Where a partition stands.
enum TaskStage: Hashable, CaseIterable, Sendable {
    /// The worker has nothing of it.
    case gone
    /// It is ours; its store has to be opened.
    case opening
    /// The restorer has the store and reads the changelog into it.
    case restoring
    case running
    /// Reads nothing until somebody has helped; its reason is told.
    case paused
    /// Cannot work at all; nothing of it is open.
    case refused
    /// Its store cannot be used for a reason of this machine, such as a full disk; nothing of it is open, and it is tried again.
    case hindered
    /// Given back with its store open: it may come again with the next assignment.
    case suspended
    /// Given back while the restorer has the store.
    case withdrawing
    /// Ours again while the restorer still has the store.
    case returning

    /// Records of it may be read.
    var reads: Bool { self == .running }
    /// Open to the processor, though it may have to wait for help.
    var isOpen: Bool { self == .running || self == .paused }
}

enum TaskEvent: Hashable, CaseIterable, Sendable {
    /// Part of a new assignment.
    case assigned
    /// A new assignment came without it.
    case notAssigned
    /// Given back in peace, after a commit.
    case revoked
    /// Others may have it already.
    case lost
    /// The session has ended: whatever is open is closed.
    case sessionEnded
    case opened
    /// Its store cannot be opened yet.
    case locked
    /// Its store is damaged, or does not belong to the log as it is.
    case useless
    /// It must not be worked on.
    case refuse
    /// This machine does not let its store be used.
    case hindered
    /// Time to try what was hindered.
    case retry
    /// The restorer is done: the store has everything.
    case restored
    /// The restorer was told to stop, and has.
    case withdrawn
    /// A record has to wait for somebody's help.
    case pause
}

enum TaskAction: Hashable, Sendable {
    case open
    /// Hand the store to the restorer.
    case restore
    case cancelRestore
    /// Seek to where the store stands, and read.
    case resume
    case pauseReading
    /// Drop what is not committed.
    case rollBack
    case closeStore
    case wipe
    case tell
}

extension TaskStage {
    /// nil: cannot happen here, which is a mistake in the worker.
    func after(_ event: TaskEvent) -> (stage: TaskStage, actions: [TaskAction])? {
        switch (self, event) {
        case (.gone, .assigned): (.opening, [.open])
        case (.gone, .notAssigned), (.gone, .sessionEnded): (.gone, [])

        case (.opening, .opened): (.restoring, [.restore])
        case (.opening, .locked): (.opening, [])
        case (.opening, .useless): (.opening, [.wipe, .open])
        case (.opening, .refuse): (.refused, [.tell])
        case (.opening, .hindered): (.hindered, [.tell])
        case (.opening, .revoked), (.opening, .lost), (.opening, .sessionEnded): (.gone, [])

        case (.restoring, .restored): (.running, [.resume])
        case (.restoring, .useless): (.opening, [.closeStore, .wipe, .open])
        case (.restoring, .refuse): (.refused, [.closeStore, .tell])
        case (.restoring, .hindered): (.hindered, [.closeStore, .tell])
        case (.restoring, .revoked), (.restoring, .lost), (.restoring, .sessionEnded):
            (.withdrawing, [.cancelRestore])

        case (.running, .pause): (.paused, [.pauseReading, .tell])
        case (.running, .revoked), (.paused, .revoked): (.suspended, [])
        case (.running, .lost), (.paused, .lost): (.suspended, [.rollBack])
        case (.running, .sessionEnded), (.paused, .sessionEnded): (.gone, [.rollBack, .closeStore])

        case (.refused, .revoked), (.refused, .lost), (.refused, .sessionEnded): (.gone, [])

        case (.hindered, .retry): (.opening, [.open])
        case (.hindered, .revoked), (.hindered, .lost), (.hindered, .sessionEnded): (.gone, [])

        case (.suspended, .assigned): (.restoring, [.restore])
        case (.suspended, .notAssigned), (.suspended, .sessionEnded): (.gone, [.closeStore])

        case (.withdrawing, .assigned): (.returning, [])
        case (.withdrawing, .notAssigned), (.withdrawing, .sessionEnded): (.withdrawing, [])
        case (.withdrawing, .withdrawn), (.withdrawing, .restored), (.withdrawing, .refuse), (.withdrawing, .hindered):
            (.gone, [.closeStore])
        case (.withdrawing, .useless): (.gone, [.closeStore, .wipe])

        case (.returning, .revoked), (.returning, .lost), (.returning, .sessionEnded): (.withdrawing, [])
        case (.returning, .withdrawn), (.returning, .restored), (.returning, .refuse), (.returning, .hindered):
            (.restoring, [.restore])
        case (.returning, .useless): (.opening, [.closeStore, .wipe, .open])

        default: nil
        }
    }
}
