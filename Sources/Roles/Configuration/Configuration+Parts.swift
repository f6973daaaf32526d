// From resolved settings to the parts of the configuration.

import Contract
import Settings

extension Configuration.Verification {
    init(_ settings: ResolvedSettings) {
        rootPaths = settings[SettingTable.verifyRoots] ?? []
        ocsp = settings.required(SettingTable.verifyOCSP)
        archivesSignedPayloads = settings.required(SettingTable.archiveSignedPayloads)
    }
}

extension Configuration.Ingest {
    init(_ settings: ResolvedSettings) {
        listen = settings.required(SettingTable.ingestListen)
        certificatePath = settings[SettingTable.ingestCertificate]
        keyPath = settings[SettingTable.ingestKey]
        isPlaintext = settings.required(SettingTable.ingestPlaintext)
        allowed = settings.required(SettingTable.ingestAllow)
        trustedProxies = settings[SettingTable.ingestTrustedProxies] ?? []
        maxBodyBytes = settings.required(SettingTable.ingestMaxBodyBytes)
        timeout = .milliseconds(settings.required(SettingTable.ingestTimeout))
        maxInFlight = settings.required(SettingTable.ingestMaxInFlight)
        repeatedMilliseconds = settings.required(SettingTable.ingestRepeated)
        maxBufferedBytes = settings.required(SettingTable.ingestMaxBufferedBytes)
        rejectedMaxBytesPerHour = settings.required(SettingTable.rejectedMaxBytesPerHour)
        usageToken = settings[SettingTable.usageToken]
    }
}

extension Configuration.Service {
    init(_ settings: ResolvedSettings) {
        logFormat = settings.required(SettingTable.logFormat)
        logLevel = settings.required(SettingTable.logLevel)
        adminListen = settings.required(SettingTable.adminListen)
    }
}

extension Configuration.Worker {
    init(_ settings: ResolvedSettings) {
        stateDirectory = settings.required(SettingTable.stateDirectory)
        stateCacheBytes = settings.required(SettingTable.stateCacheBytes)
        threads = settings.required(SettingTable.workerThreads)
        slot = settings.required(SettingTable.workerSlot)
        leaves = settings.required(SettingTable.workerLeave)
        commitInterval = .milliseconds(settings.required(SettingTable.commitInterval))
    }
}

extension Configuration.ReadAPI {
    init(_ settings: ResolvedSettings) {
        listen = settings.required(SettingTable.apiListen)
        tokens = settings[SettingTable.apiToken] ?? []
        maxBehind = .milliseconds(settings.required(SettingTable.apiMaxBehind))
    }
}

extension Configuration.Consumption {
    /// Of Apple's limits in sandbox, which are a tenth of those of production.
    private static let sandboxRate = 5

    init(_ settings: ResolvedSettings, _ environment: Contract.Environment) {
        policyPath = settings[SettingTable.consumptionPolicy]
        wait = .milliseconds(settings.required(SettingTable.consumptionWait))
        sends = settings.required(SettingTable.consumptionSend)
        let isDefault = settings.origin(of: SettingTable.consumptionRate.definition.key) == .builtIn
        rate =
            isDefault && environment == .sandbox ? Self.sandboxRate : settings.required(SettingTable.consumptionRate)
    }
}

extension Configuration.Apple {
    init(_ settings: ResolvedSettings) {
        issuerId = settings[SettingTable.appleIssuerId]
        keyId = settings[SettingTable.appleKeyId]
        key = settings[SettingTable.appleKey]
        production = settings.required(SettingTable.appleProduction)
        sandbox = settings.required(SettingTable.appleSandbox)
        authorityPath = settings[SettingTable.appleCA]
    }
}
