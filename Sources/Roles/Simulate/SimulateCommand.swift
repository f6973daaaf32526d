// `perennial simulate`: a make-believe App Store that signs, tells and posts.

import Configuration
import Platform

extension Command {
    static let simulate = Command(
        .simulate, "Plays the App Store: tells life cycles of subscriptions as signed notifications.",
        options: SimulateOptions.options,
        details: """
            Every subscriber lives one story, chosen by the seed: trials, renewals, failed payments, grace, refunds, plan
            changes, families, commitments. Each notification is signed by an own certificate authority built like Apple's;
            ingest takes them when verify.roots names the file of --root and apps the file of --apps.

            The posts of a subscriber keep the order in which they were signed, but for what --delays and --reorder disturb
            and for what is sent again: what is not answered with 200 to 206 is, after 1, 12, 24, 48 and 72 hours (in sandbox never), --retry-scale times faster.

            --out writes DIR/00000000.jws and so on, in the order of posting, and DIR/index.jsonl with what each of them is.
            --acknowledged writes a line for each post that has its last answer: notificationUUID, sha256 of the signed
            payload, sends, status (null: no answer), error, verdict (accepted, refused: a forgery as it should be; wrong: a
            forgery treated otherwise; unsettled: given up) and expected.
            --truth writes lines of the kinds did, access (who could use what, and why), final, and refund_request (who
            consented to what, whether the request may be answered, and how it ended).

            --api plays Apple's side of refund requests: it takes and refuses what Apple's documents say, by the tokens of
            --api-key, of the apps of --apps. With --speed or --live Apple decides by what was answered until then, else by
            the seed. It serves on after the last post. --api-journal has at, server, method, path, version, transactionId, bundleId (of
            a token that holds), userAgent, sha256 and body, taken (Apple has it), status, errorCode, message, retryAfter
            and fault (what --api-faults chose); status null: it was not answered.
            --usage plays the app's backend: who consents, what was delivered, how much of it is used.

            The same seed, dates and rates give the same bytes; without --from the dates move on at midnight, UTC.

            Exit codes: 0 every notification was taken and every forgery refused for its reason; 1 not so; 2 wrong usage;
            3 a file could not be written, or interrupted. Interrupted while it only serves --api: as if it had ended.
            """,
        serviceOption: "api",
        action: .plain { invocation in
            let options: SimulateOptions
            do throws(SettingFaults) {
                options = try SimulateOptions(invocation, now: WallClock.milliseconds())
            } catch {
                for text in error.texts { invocation.output.message("perennial simulate: \(text)") }
                invocation.output.message("perennial help simulate shows what it takes")
                return .wrongUsage
            }
            return SimulateRun(options: options, output: invocation.output).run()
        })
}
