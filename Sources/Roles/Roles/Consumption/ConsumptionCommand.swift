// `perennial consumption`: wiring.

import AppStoreAPI
import Cluster
import CommandLine
import Configuration
import ConsumptionSender
import Contract
import Crypto
import HTTPClient
import Platform
import Runtime
import Service
import Settings
import Telemetry
import Tools
import Workers

extension Command {
    private static let whatIfWord = "what-if"

    static let consumption = Command(
        .consumption, "Answers Apple's refund requests: by policy, in time, once.", operands: "[\(whatIfWord)]",
        operandCount: 0...1, options: whatIfOptions,
        details: """
            Reads notifications, usage (what the app's backend reports about purchases) and consumption-attempts; writes
            consumption, one record for each step of a request. It sends each decision to the App Store Server API, with the key
            that apple.issuer.id, apple.key.id and apple.key name, and writes Apple's answer to consumption-attempts. With
            consumption.send=false it sends nothing and needs no key. It sends nothing without the consent of the customer,
            whatever the policy says. It answers only for the apps that the setting apps lists.
            Replicas share the partitions; give each a worker.slot of its own. The local state is a cache. Runs until SIGTERM or
            SIGINT.

            \(whatIfDetails)
            """,
        toolOperand: whatIfWord,
        action: .service { invocation, configuration in
            switch invocation.operands.first {
            case whatIfWord?: return whatIf(invocation, configuration)
            case let other?:
                invocation.output.message(
                    "perennial consumption: there is no operand \(quoted(other)): the worker runs without operands, and "
                        + "\(whatIfWord) tries another policy")
                return .wrongUsage
            case nil: break
            }
            if let option = whatIfOptions.first(where: { invocation.has($0.name) }) {
                invocation.output.message(
                    "perennial consumption: --\(option.name) belongs to what-if: perennial consumption what-if --policy FILE"
                )
                return .wrongUsage
            }
            return ConsumptionRun(
                configuration: configuration, output: invocation.output, reload: invocation.reload
            ).run()
        })
}

struct ConsumptionRun {
    let configuration: Configuration
    let output: Output
    let reload: @Sendable () throws -> Configuration

    func run() -> ExitCode {
        let files: ConsumptionFiles
        do throws(ConfigurationFaults) {
            files = try ConsumptionFiles(configuration)
        } catch {
            for fault in error.faults { output.message("perennial consumption: \(fault)") }
            return .wrongUsage
        }
        let run = WorkerRun(worker: .consumption, configuration: configuration, output: output, reload: reload)
        var api: AppStoreServerAPI?
        if configuration.consumption.sends {
            do throws(Refusal) { api = try makeAPI(files, run.replica) } catch { return refuse(error.words) }
        } else {
            let service = configuration.service
            Logger(level: service.logLevel, format: service.logFormat)
                .info("consumption.send is false: decisions are recorded, and nothing is sent")
        }
        let make: ProcessorMaker
        do throws(ToolFault) {
            make = try WorkerName.consumption.processors(configuration, policy: files.policy) { _, _ in }
        } catch {
            return refuse(error.lines.joined(separator: "; "))
        }
        let code = run.run(
            beside: { [configuration] parts in
                guard let api else { return [] }
                return [SenderService(configuration, parts, api)]
            },
            { make($0, nil) })
        api?.close()
        return code
    }

    /// With up to this many apps, slow answers for one app do not delay another. Each app may have as many connections as attempts.
    private static let limitAppsAtOnce = 8

    private struct Refusal: Error { let words: String }

    private func refuse(_ words: String) -> ExitCode {
        output.message("perennial consumption: \(words)")
        return .wrongUsage
    }

    private func makeAPI(_ files: ConsumptionFiles, _ replica: Replica) throws(Refusal) -> AppStoreServerAPI {
        let apple = configuration.apple
        guard let issuerId = apple.issuerId, let keyId = apple.keyId, let key = files.appleKey else {
            throw Refusal(words: "the App Store Server API key is incomplete")
        }
        var settings = AppStoreServerAPI.Configuration()
        settings.production = apple.production.description
        settings.sandbox = apple.sandbox.description
        settings.authorities = files.appleAuthority
        settings.maxInFlight = SenderOptions.usualMaxInFlight * min(configuration.apps.count, Self.limitAppsAtOnce)
        // Names the replica, so that a request can be traced to it.
        settings.userAgent =
            "perennial/\(PerennialVersion.text) (\(configuration.names.group(.consumption)).\(replica))"
        let signer: APIKey
        do throws(APIKeyFault) {
            signer = try APIKey(issuerId: issuerId, keyId: keyId, pem: key.pem)
        } catch {
            throw Refusal(words: error.description)
        }
        do throws(HTTPClientFault) {
            return try AppStoreServerAPI(key: signer, configuration: settings, now: WallClock.milliseconds)
        } catch {
            throw Refusal(words: error.detail)
        }
    }
}

extension SenderService {
    fileprivate convenience init(_ configuration: Configuration, _ run: WorkerRun.Parts, _ api: AppStoreServerAPI) {
        let worker = run.worker
        self.init(
            SenderOptions(
                configuration.names, partitions: Int32(configuration.topicPlan.partitions),
                rate: configuration.consumption.rate, app: "perennial/\(PerennialVersion.text)"),
            worker: WorkerView(ownership: worker.ownership, positions: { worker.positions(of: $0) }),
            carrier: AppStoreCarrier(api, configuration.environment, now: WallClock.milliseconds), log: run.log,
            health: run.health, metrics: run.metrics, logger: run.logger)
    }
}
