// Requests the ends of the topics, and logs the progress towards them.

internal import Log
internal import Platform
internal import Telemetry

extension FollowerCore {
    /// Requests the ends of the topics. What was read up to them is complete as of the time of the request.
    func look(_ reader: any LogReader) throws(LogFault) {
        nextLook = time.elapsed() + options.lookInterval
        for partition in partitions {
            if let fault = partition.sink.fault { fail(partition, fault) }
        }
        // The reader was dropped with a sink that failed: the next step opens another.
        if self.reader == nil { return }
        var asked: [TopicPartition] = []
        for partition in partitions {
            for topic in partition.topics where partition.isRead(topic) { asked.append(name(topic, partition)) }
        }
        let (wall, elapsed) = (time.wall(), time.elapsed())
        let ends = try reader.ends(options.ends, of: asked, by: Deadline(after: options.questionLimit))
        isLookWanted = false
        var remaining: Int64 = 0
        for partition in partitions {
            for topic in partition.topics {
                guard let end = ends[name(topic, partition)] else { continue }
                remaining += max(0, end.value - (partition.places[topic].next?.value ?? 0))
                partition.see(topic, Partition.Goal(end: end, wall: wall, elapsed: elapsed))
                // The follower was cut off for so long that deletions may be lost: the next opening of the reader
                // decides about that.
                if partition.courses[topic].goal != nil, isTooOld(topic, partition, at: wall) { dropReader() }
            }
            if partition.held == 0 { partition.sink.move(to: partition.places) }
        }
        looks += 1
        counts.remaining.set(Double(remaining))
        readiness.update { $0.remaining = remaining }
        tellProgress(remaining)
    }

    private func tellProgress(_ remaining: Int64) {
        guard !wasComplete, time.elapsed() >= nextProgress else { return }
        nextProgress = time.elapsed() + FollowLimits.progressInterval
        logger.info(
            "catching up", ["records_remaining": .integer(remaining), "records_read": .integer(recordsRead)])
    }

    func report() {
        for partition in partitions where partition.isComplete && partition.held == 0 {
            partition.sink.confirm()
            partition.isConfirmed = true
        }
        let times = partitions.map(\.completeAt)
        // The copy whose completeness is oldest counts.
        let completeAt = times.contains { $0 == nil } ? nil : times.compactMap { $0 }.min()
        let pauses = partitions.flatMap(\.pauses)
        counts.paused.set(Double(pauses.count))
        readiness.update { state in
            state.isIdle = false
            state.completeAt = completeAt
            state.pauses = pauses
        }
        if completeAt != nil, !wasComplete {
            logger.info("caught up", ["records_read": .integer(recordsRead)])
        }
        wasComplete = completeAt != nil
    }

    func reportIdle() {
        counts.remaining.set(0)
        counts.paused.set(0)
        readiness.update { state in
            state = Readiness.State()
            state.isIdle = true
        }
        wasComplete = false
    }

    /// Logs each fault once.
    func tell(_ fault: LogFault?) -> FollowStep {
        readiness.update { $0.fault = fault?.words }
        guard let fault else {
            if faultTold != nil { logger.info("the topics are followed again") }
            (faultTold, faultSince) = (nil, nil)
            return .done
        }
        let since = faultSince ?? time.elapsed()
        faultSince = since
        let isPassing = fault.cause == .leaderMoves && time.elapsed() - since < FollowLimits.leaderPatience
        if !isPassing, fault.words != faultTold {
            logger.error("the topics cannot be followed", ["reason": .string(fault.words)])
            faultTold = fault.words
        }
        return .failed
    }
}
