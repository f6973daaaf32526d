// Settings that are each right and do not go together.

import Platform
import Settings

/// Only for commands that read them: a role's own settings may be set where its process runs and nowhere else.
func conflicts(in settings: ResolvedSettings, for command: CommandName) -> [SettingFault] {
    switch command {
    case .topics: topicConflicts(settings)
    case .ingest: ingestConflicts(settings)
    case .api: apiConflicts(settings)
    case .consumption, .backfill: appleConflicts(settings)
    case .check: topicConflicts(settings) + tlsConflicts(settings) + apiConflicts(settings) + appleConflicts(settings)
    default: []
    }
}

/// Files that other commands would miss when they start. `apps` is read in full and not among them.
func unreadableFiles(in settings: ResolvedSettings) -> [SettingFault] {
    let single = [
        SettingTable.ingestCertificate, SettingTable.ingestKey, SettingTable.consumptionPolicy, SettingTable.appleKey,
    ]
    var named = single.compactMap { setting in settings[setting].map { (setting.definition.key, $0) } }
    named += (settings[SettingTable.verifyRoots] ?? []).map { (SettingTable.verifyRoots.definition.key, $0) }
    // The App Store key itself may have been given by `file:`.
    return named.filter { !$0.1.hasPrefix("-----BEGIN") }.compactMap { key, path in
        do throws(FileFault) {
            _ = try readFile(path)
            return nil
        } catch {
            return SettingFault(settings.origin(of: key), "\(key): \(error)")
        }
    }
}

private func topicConflicts(_ settings: ResolvedSettings) -> [SettingFault] {
    let copies = settings.required(SettingTable.replicationFactor)
    let needed = settings.required(SettingTable.minimumInSyncReplicas)
    guard needed > copies else { return [] }
    return [
        SettingFault(
            settings.origin(of: SettingTable.minimumInSyncReplicas.definition.key),
            "topics.min.insync.replicas (\(needed)) is greater than topics.replication.factor (\(copies)): "
                + "nothing could be written; lower the one or raise the other")
    ]
}

private func ingestConflicts(_ settings: ResolvedSettings) -> [SettingFault] {
    var faults = tlsConflicts(settings)
    if settings[SettingTable.apps] == nil {
        faults.append(SettingFault("apps is not set: ingest has to know which apps are yours; name the JSON file"))
    }
    let isPlaintext = settings.required(SettingTable.ingestPlaintext)
    let hasNoTLS = settings[SettingTable.ingestCertificate] == nil && settings[SettingTable.ingestKey] == nil
    if hasNoTLS && !isPlaintext {
        faults.append(
            SettingFault(
                "ingest has no certificate: set ingest.tls.certificate and ingest.tls.key, or, behind a proxy that ends "
                    + "TLS, ingest.plaintext = true"))
    }
    return faults
}

private func tlsConflicts(_ settings: ResolvedSettings) -> [SettingFault] {
    let hasCertificate = settings[SettingTable.ingestCertificate] != nil
    let hasKey = settings[SettingTable.ingestKey] != nil
    guard hasCertificate != hasKey else { return [] }
    let (given, missing) =
        hasCertificate
        ? ("ingest.tls.certificate", "ingest.tls.key") : ("ingest.tls.key", "ingest.tls.certificate")
    return [SettingFault(settings.origin(of: given), "\(given) is set and \(missing) is not; set both or none")]
}

/// Who owns what is nobody else's business: without a token only this machine may ask.
private func apiConflicts(_ settings: ResolvedSettings) -> [SettingFault] {
    let listen = settings.required(SettingTable.apiListen)
    guard settings[SettingTable.apiToken] == nil, !listen.address.isLoopback else { return [] }
    return [
        SettingFault(
            settings.origin(of: SettingTable.apiListen.definition.key),
            "api.listen \(listen) can be reached from other machines and api.token is not set; set the token, or listen on "
                + "127.0.0.1")
    ]
}

private func appleConflicts(_ settings: ResolvedSettings) -> [SettingFault] {
    let parts = [
        (SettingTable.appleIssuerId.definition.key, settings[SettingTable.appleIssuerId]),
        (SettingTable.appleKeyId.definition.key, settings[SettingTable.appleKeyId]),
        (SettingTable.appleKey.definition.key, settings[SettingTable.appleKey]),
    ]
    let missing = parts.filter { $0.1 == nil }.map(\.0)
    guard (1..<parts.count).contains(missing.count) else { return [] }
    return [
        SettingFault("the App Store Server API key is incomplete: set \(missing.joined(separator: " and ")) as well")
    ]
}
