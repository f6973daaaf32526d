// `perennial simulate`: a simulated App Store that signs and posts notifications.

package import CommandLine
import Configuration
import Platform

extension Command {
    package static let simulate = Command(
        .simulate, "Simulates the App Store: life cycles of subscriptions as signed notifications.",
        options: SimulateOptions.options,
        details: """
            Every subscriber has one story, chosen by the seed: trials, renewals, failed payments, grace, refunds, plan changes,
            families, commitments. Each notification is signed by a certificate authority of its own that is built like Apple's. Ingest
            accepts the notifications if verify.roots names the file of --root and apps the file of --apps.

            The posts of a subscriber keep the order in which they were signed, except for what --delays, --reorder and retries change.
            A post that is not answered with 200 to 206 is retried after 1, 12, 24, 48 and 72 hours (never in sandbox), --retry-scale
            times faster.

            --out writes DIR/00000000.jws and so on, in the order of posting, and DIR/index.jsonl, which says what each of them is.
            --acknowledged writes a line for each post that has its last answer: notificationUUID, sha256 of the signed payload, sends,
            status (null: no answer), error, verdict (accepted; refused: a forgery for the right reason; wrong: a forgery not refused for
            its reason; unsettled: given up) and expected.
            --truth writes lines of the kinds did, access (who could use what, and why), final, and `refund_request` (who consented to
            what, whether the request may be answered, and how it ended).

            --api plays Apple's side of refund requests. It accepts and refuses what Apple's documentation says, with the tokens of
            --api-key, for the apps of --apps. With --speed or --live, Apple decides by the answers it has by then, otherwise by the seed.
            It keeps serving after the last post. --api-journal has at, server, method, path, version, transactionId, bundleId (of a valid
            token), userAgent, sha256 and body, taken (Apple accepted it), status (null: not answered), errorCode, message, retryAfter and
            fault (what --api-faults chose).
            --usage plays the app's backend: who consents, what was delivered, how much of it was used.

            The same seed, subscribers, dates and rates give the same bytes. Without --from, the dates move on at midnight, UTC.

            Exit codes: 0 every notification was accepted and every forgery refused for its reason; 1 otherwise; 2 wrong usage;
            3 a file could not be written, or the command was interrupted. An interruption while it only serves --api is a normal end.
            """,
        serviceOption: "api",
        action: .plain { invocation in
            let options: SimulateOptions
            do throws(SettingFaults) {
                options = try SimulateOptions(invocation, now: WallClock.milliseconds())
            } catch {
                for text in error.texts { invocation.output.message("perennial simulate: \(text)") }
                invocation.output.message("perennial help simulate shows its options")
                return .wrongUsage
            }
            return SimulateRun(options: options, output: invocation.output).run()
        })
}
