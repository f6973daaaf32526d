// The life of one partition in a worker, as a pure function.

/// The state of a partition.
enum TaskStage: Hashable, CaseIterable, Sendable {
    /// The worker has nothing of the partition.
    case gone
    /// The partition is ours; its store must be opened.
    case opening
    /// The restorer has the store and reads the changelog into it.
    case restoring
    case running
    /// Reads nothing until a person has helped; the reason is logged.
    case paused
    /// Cannot be processed at all; nothing of it is open.
    case refused
    /// Its store cannot be used because of this machine, such as a full disk. Nothing of it is open, and opening is
    /// retried.
    case hindered
    /// Revoked, with its store open: the next assignment may contain it again.
    case suspended
    /// Revoked while the restorer has the store.
    case withdrawing
    /// Assigned again while the restorer still has the store.
    case returning

    /// Records of it may be read.
    var reads: Bool { self == .running }
    /// The processor has opened it, although it may have to wait for help.
    var isOpen: Bool { self == .running || self == .paused }
}

enum TaskEvent: Hashable, CaseIterable, Sendable {
    /// A new assignment contains it.
    case assigned
    /// A new assignment does not contain it.
    case notAssigned
    /// Revoked in order, after a commit.
    case revoked
    /// Lost: another member may have it already.
    case lost
    /// The session has ended: everything open is closed.
    case sessionEnded
    case opened
    /// Its store cannot be opened yet.
    case locked
    /// Its store is damaged, or does not belong to the log as it is now.
    case useless
    /// It must not be processed.
    case refuse
    /// Its store cannot be used on this machine.
    case hindered
    /// It is time to retry a hindered partition.
    case retry
    /// The restorer is finished: the store has the whole changelog.
    case restored
    /// The restorer has stopped as requested.
    case withdrawn
    /// A record must wait until a person helps.
    case pause
}

enum TaskAction: Hashable, Sendable {
    case open
    /// Hand the store to the restorer.
    case restore
    case cancelRestore
    /// Seek to the position of the store, and read.
    case resume
    case pauseReading
    /// Drop uncommitted changes.
    case rollBack
    case closeStore
    case wipe
    case tell
}

extension TaskStage {
    /// nil: the event cannot happen in this stage; it is a bug in the worker.
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
        // Opened again, because the restorer may have written a later note.
        case (.returning, .withdrawn), (.returning, .restored), (.returning, .refuse), (.returning, .hindered):
            (.opening, [.closeStore, .open])
        case (.returning, .useless): (.opening, [.closeStore, .wipe, .open])

        default: nil
        }
    }
}
