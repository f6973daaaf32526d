import Testing

@testable import Runtime

/// Who has opened the partition's store.
private enum Hand { case nobody, worker, restorer }

extension TaskStage {
    fileprivate var hand: Hand {
        switch self {
        case .gone, .opening, .refused, .hindered: .nobody
        case .running, .paused, .suspended: .worker
        case .restoring, .withdrawing, .returning: .restorer
        }
    }
}

@Suite struct `The life of a partition in a worker` {
    /// Every pair that can occur; pairs that are not listed cannot.
    private static let table = """
        gone assigned -> opening: open
        gone notAssigned -> gone:
        gone sessionEnded -> gone:
        opening opened -> restoring: restore
        opening locked -> opening:
        opening useless -> opening: wipe open
        opening refuse -> refused: tell
        opening hindered -> hindered: tell
        opening revoked -> gone:
        opening lost -> gone:
        opening sessionEnded -> gone:
        restoring restored -> running: resume
        restoring useless -> opening: closeStore wipe open
        restoring refuse -> refused: closeStore tell
        restoring hindered -> hindered: closeStore tell
        restoring revoked -> withdrawing: cancelRestore
        restoring lost -> withdrawing: cancelRestore
        restoring sessionEnded -> withdrawing: cancelRestore
        running pause -> paused: pauseReading tell
        running revoked -> suspended:
        running lost -> suspended: rollBack
        running sessionEnded -> gone: rollBack closeStore
        paused revoked -> suspended:
        paused lost -> suspended: rollBack
        paused sessionEnded -> gone: rollBack closeStore
        refused revoked -> gone:
        refused lost -> gone:
        refused sessionEnded -> gone:
        hindered retry -> opening: open
        hindered revoked -> gone:
        hindered lost -> gone:
        hindered sessionEnded -> gone:
        suspended assigned -> restoring: restore
        suspended notAssigned -> gone: closeStore
        suspended sessionEnded -> gone: closeStore
        withdrawing assigned -> returning:
        withdrawing notAssigned -> withdrawing:
        withdrawing sessionEnded -> withdrawing:
        withdrawing withdrawn -> gone: closeStore
        withdrawing restored -> gone: closeStore
        withdrawing refuse -> gone: closeStore
        withdrawing hindered -> gone: closeStore
        withdrawing useless -> gone: closeStore wipe
        returning revoked -> withdrawing:
        returning lost -> withdrawing:
        returning sessionEnded -> withdrawing:
        returning withdrawn -> opening: closeStore open
        returning restored -> opening: closeStore open
        returning refuse -> opening: closeStore open
        returning hindered -> opening: closeStore open
        returning useless -> opening: closeStore wipe open
        """

    @Test func `is what the table says, for every stage and event`() {
        let lines = Self.table.split(separator: "\n")
        var seen = 0
        for stage in TaskStage.allCases {
            for event in TaskEvent.allCases {
                let start = "\(stage) \(event) -> "
                let expected = lines.first { $0.hasPrefix(start) }.map(String.init)
                let found = stage.after(event).map { after in
                    start + "\(after.stage):" + after.actions.map { " \($0)" }.joined()
                }
                #expect(found == expected)
                if found != nil { seen += 1 }
            }
        }
        #expect(seen == lines.count)
    }

    @Test func `has the store in exactly one hand, on every path of eight events`() {
        var paths = 0
        var reached: Set<TaskStage> = []
        func walk(_ stage: TaskStage, _ path: [TaskEvent]) {
            reached.insert(stage)
            paths += 1
            if path.count == 8 { return }
            for event in TaskEvent.allCases {
                guard let (next, actions) = stage.after(event) else { continue }
                var hand = stage.hand
                switch event {
                case .opened: hand = take(hand, .nobody, .worker, path, event)
                // The reply carries the store; in `opening` these events come from the worker itself.
                case .restored, .withdrawn, .useless, .refuse, .hindered:
                    if stage != .opening { hand = take(hand, .restorer, .worker, path, event) }
                default: break
                }
                for action in actions {
                    switch action {
                    case .restore: hand = take(hand, .worker, .restorer, path, event)
                    case .closeStore: hand = take(hand, .worker, .nobody, path, event)
                    case .open, .wipe: hand = take(hand, .nobody, .nobody, path, event)
                    case .cancelRestore: hand = take(hand, .restorer, .restorer, path, event)
                    case .resume, .pauseReading, .rollBack: hand = take(hand, .worker, .worker, path, event)
                    case .tell: break
                    }
                }
                if hand != next.hand { Issue.record("after \(path + [event]) the store is with \(hand)") }
                walk(next, path + [event])
            }
        }
        walk(.gone, [])
        #expect(paths > 10_000)
        #expect(reached == Set(TaskStage.allCases))
    }

    private func take(_ hand: Hand, _ from: Hand, _ to: Hand, _ path: [TaskEvent], _ event: TaskEvent) -> Hand {
        if hand != from { Issue.record("\(event) after \(path) finds the store with \(hand)") }
        return to
    }

    @Test(arguments: TaskStage.allCases)
    func `ends with the session: what is open is closed, and a restore that ends brings the store home`(
        stage: TaskStage
    ) throws {
        let (after, actions) = try #require(stage.after(.sessionEnded))
        if stage.hand == .worker { #expect(actions.contains(.closeStore)) }
        if stage.hand != .restorer {
            #expect(after == .gone)
            return
        }
        for reply in [TaskEvent.withdrawn, .restored, .refuse, .hindered, .useless] {
            let (end, actions) = try #require(after.after(reply))
            #expect(end == .gone)
            #expect(actions.contains(.closeStore))
        }
    }

    @Test func `reads in one stage only`() {
        #expect(TaskStage.allCases.filter(\.reads) == [.running])
    }
}
