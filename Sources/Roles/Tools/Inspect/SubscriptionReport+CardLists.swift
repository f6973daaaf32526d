// The lists of a card: purchases, content and notifications of a subscription.

import CommandLine
import Entitlements

extension SubscriptionReport {
    func addTimeline(_ answer: Answer, _ card: inout CardLines) {
        guard let graphic = TimelineGraphic(answer.purchases, now: answer.instant) else { return }
        let (start, end) = (shownTime(graphic.start), shownTime(graphic.end))
        let space = max(1, TimelineGraphic.columns - start.count - end.count)
        card.line(start + String(repeating: " ", count: space) + end, label: "timeline")
        card.line(graphic.line)
        if let pointer = graphic.pointer { card.line(pointer) }
        card.line(graphic.legend)
        card.blank()
    }

    func addPurchases(_ answer: Answer, _ showsAll: Bool, _ card: inout CardLines) {
        let left = showsAll ? 0 : max(0, answer.purchases.count - Self.shownPurchases)
        if left > 0 { card.line("\(left) older: --all shows them", label: "purchases") }
        let shown = answer.purchases.dropFirst(left)
        let startWidth = shown.map { shownTime($0.start).count }.max() ?? 0
        let endWidth = shown.map { Self.end(of: $0).count }.max() ?? 0
        var latest = Self.latestEnd(answer.purchases.prefix(left))
        for (index, purchase) in shown.enumerated() {
            var label = index == 0 && left == 0 ? "purchases" : ""
            if let end = latest, end < purchase.start {
                card.line("-- lapse of \(shownLength(distance(from: end, to: purchase.start))) --", label: label)
                label = ""
            }
            latest = Self.latestEnd([purchase], after: latest)
            let start = padded(shownTime(purchase.start), to: startWidth)
            let times = start + " - " + padded(Self.end(of: purchase), to: endWidth) + "  "
            card.text(label, times + Self.words(of: purchase), hanging: times.count)
        }
    }

    private static func end(of purchase: Timeline.Purchase) -> String { purchase.end.map(shownTime) ?? "no end" }

    /// The end of all purchases so far; nil: there is no purchase, or one has no end, so no lapse follows.
    private static func latestEnd(_ purchases: some Sequence<Timeline.Purchase>, after latest: Int64? = nil) -> Int64? {
        var latest = latest
        for purchase in purchases where purchase.fate != .refunded {
            latest = max(latest ?? .min, purchase.hadUntil ?? .max)
        }
        return latest
    }

    private static func words(of purchase: Timeline.Purchase) -> String {
        let transaction = purchase.transaction
        var words = [transaction.productId.map { shownText("\($0)") } ?? "no product"]
        if let price = transaction.price { words.append(shownMoney(price, transaction.currency.map { "\($0)" })) }
        if let discount = transaction.offer?.discount { words.append(shownText("\(discount)")) }
        if let period = transaction.commitment?.period {
            words.append("period \(period)" + (transaction.commitment?.of.map { " of \($0)" } ?? ""))
        }
        if let paid = transaction.expiresDate, let end = purchase.end, end > paid {
            words.append("paid until \(shownTime(paid)), then grace")
        }
        let date = purchase.fateDate.map { " \(shownTime($0))" } ?? ""
        switch purchase.fate {
        case .kept: break
        case .refunded: words.append("REFUNDED\(date)")
        case .upgraded: words.append("upgraded\(date)")
        case .taken: words.append("TAKEN BACK\(date)")
        }
        return words.joined(separator: ", ")
    }

    func addContent(_ card: inout CardLines) {
        guard !content.isEmpty else { return }
        card.blank()
        let width = content.map { shownDay($0.published).count }.max() ?? 0
        for (index, item) in content.enumerated() {
            var words = "no: not published in a run, nor the newest when one began"
            if let run = item.run, let cause = item.cause {
                let span = "\(shownDay(run.start)) - \(run.end.map(shownDay) ?? "no end")"
                words = item.isInCurrentRun ? "yes: " : "archive: "
                words +=
                    cause == .publishedInRun ? "published in the run \(span)" : "the newest when the run \(span) began"
            }
            let date = padded(shownDay(item.published), to: width + 2)
            card.text(index == 0 ? "content" : "", date + words, hanging: date.count)
        }
        if content.contains(where: { $0.isAccessible && !$0.isInCurrentRun }) {
            card.text("", "(archive: yes, unless the product opens only items of the current run)")
        }
        if answer?.entitlement.runsTruncated ?? false {
            card.text("", "older runs are not kept: it is not known what they opened")
        }
    }

    func addNotifications(_ showsAll: Bool, _ card: inout CardLines) {
        let shown = showsAll ? told[...] : told.suffix(Self.shownNotifications)
        let left = olderCount + told.count - shown.count
        if left > 0 {
            card.line(
                showsAll ? "\(left) older are not listed" : "\(left) older: --all shows them", label: "notifications")
        }
        let times = shown.map { shownTime($0.signedDate ?? $0.timestamp) }
        let width = (times.map(\.count).max() ?? 0) + 2
        for (index, (notification, time)) in zip(shown, times).enumerated() {
            let name = [notification.type ?? "fetched", notification.subtype].compactMap { $0 }.map(shownText)
            card.text(
                index == 0 && left == 0 ? "notifications" : "",
                padded(time, to: width) + name.joined(separator: " ") + ", offset \(notification.offset)",
                hanging: width)
        }
        if told.isEmpty { card.line("none", label: "notifications") }
        if unreadable > 0 { card.text("", "this version cannot read \(unreadable) more") }
    }
}
