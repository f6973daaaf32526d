// The commands of this version. A command name that is not listed here is reported as not existing yet.

import Cluster
package import CommandLine
import Demo
import Kafka
import Simulator
import Tools

extension Program {
    package static let standard = Program(
        commands: [
            .ingest,
            .api,
            .clock,
            .entitlements,
            .churn,
            .consumption,
            .replay,
            .promote,
            .diff,
            .offsets,
            .topics,
            .deadLetters,
            .inspect,
            .usage,
            .verify,
            .check,
            .size,
            .simulate,
            .demo,
            .help,
            .version(),
        ], examples: examples, judge: { ClientProperties.complaints($0) })
}
