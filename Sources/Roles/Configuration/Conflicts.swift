// Settings that are valid alone but not together.

import Glibc
import Platform
import Settings
import Zone

/// Only for commands that read them: a role's own settings may be set only where its process runs.
///
/// - Parameter role: the role that `check` checks; nil: it checks all roles.
func conflicts(in settings: ResolvedSettings, for command: CommandName, of role: CommandName? = nil) -> [SettingFault] {
    environmentConflicts(settings, for: role ?? command) + partConflicts(settings, for: command, of: role)
}

/// Every other command reads or writes data of one environment only.
private func environmentConflicts(_ settings: ResolvedSettings, for command: CommandName) -> [SettingFault] {
    let servesBoth: [CommandName] = [.ingest, .clock, .api, .topics, .deadLetters, .offsets, .check]
    let definition = SettingTable.environment.definition
    guard definition.readers.contains(command.rawValue), !servesBoth.contains(command),
        settings.required(SettingTable.environment) == .both
    else { return [] }
    return [
        SettingFault(
            settings.origin(of: definition.key),
            "environment is both, but perennial \(command.rawValue) needs one, production or sandbox: run one process "
                + "for each")
    ]
}

private func partConflicts(
    _ settings: ResolvedSettings, for command: CommandName, of role: CommandName?
) -> [SettingFault] {
    switch command {
    case .check where role != nil:
        topicConflicts(settings) + (role.map { partConflicts(settings, for: $0, of: nil) } ?? [])
    case .topics, .size: topicConflicts(settings)
    case .ingest: ingestConflicts(settings)
    case .api: apiConflicts(settings)
    case .consumption: consumptionConflicts(settings)
    case .backfill: appleConflicts(settings)
    case .check:
        topicConflicts(settings) + tlsConflicts(settings) + apiConflicts(settings) + appleConflicts(settings)
    default: []
    }
}

/// Files that `command` will need. `apps` is parsed completely and is not among them; the users of the other files
/// check their contents.
func unreadableFiles(
    in settings: ResolvedSettings, for command: CommandName, of role: CommandName? = nil
) -> [SettingFault] {
    let command = role ?? command
    let single = [
        SettingTable.ingestCertificate, SettingTable.ingestKey, SettingTable.consumptionPolicy, SettingTable.appleKey,
        SettingTable.appleCA,
    ]
    var named = single.compactMap { setting in settings[setting].map { (setting.definition, $0) } }
    named += (settings[SettingTable.verifyRoots] ?? []).map { (SettingTable.verifyRoots.definition, $0) }
    // The App Store key itself may have been given by `file:`.
    let opened = named.filter { $0.0.readers.contains(command.rawValue) && !$0.1.hasPrefix("-----BEGIN") }
    let faults: [SettingFault] = opened.compactMap { definition, path in
        do throws(FileFault) {
            _ = try readFile(path)
            return nil
        } catch {
            let words = definition.isSecret ? unreadableKey(path, error) : "\(error)"
            return SettingFault(settings.origin(of: definition.key), "\(definition.key): \(words)")
        }
    }
    return faults + unknownZone(settings, for: command)
}

/// A key without its first and last line looks like a path. So a text that names no file is never shown.
private func unreadableKey(_ path: String, _ fault: FileFault) -> String {
    if access(path, F_OK) == 0 { return "\(fault)" }
    return "it names no existing file (it is not shown, because it may be the key itself; a key begins with "
        + "-----BEGIN PRIVATE KEY-----)"
}

/// The files of keys that every user of this machine can read.
func openKeys(_ settings: ResolvedSettings, readBy command: CommandName) -> [String] {
    [SettingTable.ingestKey, SettingTable.appleKey].compactMap { setting in
        guard setting.definition.readers.contains(command.rawValue) else { return nil }
        return settings[setting].flatMap { ResolvedSettings.opennessWords(setting.definition.key, $0) }
    }
}

/// Files that decide which signatures are accepted and what is answered, and that another user can change.
func foreignFiles(_ settings: ResolvedSettings, readBy command: CommandName) -> [String] {
    var named = [SettingTable.apps, SettingTable.consumptionPolicy].compactMap { setting in
        settings[setting].map { (setting.definition, $0) }
    }
    named += (settings[SettingTable.verifyRoots] ?? []).map { (SettingTable.verifyRoots.definition, $0) }
    return named.filter { $0.0.readers.contains(command.rawValue) }.compactMap { definition, path in
        whyOthersCanChange(path).map { "\(definition.key): \(path): \($0)" }
    }
}

/// Reports nothing if the system has no time zones at all: the name may be right.
private func unknownZone(_ settings: ResolvedSettings, for command: CommandName) -> [SettingFault] {
    let definition = SettingTable.churnZone.definition
    guard definition.readers.contains(command.rawValue), access(Zone.directory, F_OK) == 0 else { return [] }
    do throws(ZoneFault) {
        _ = try Zone(name: settings.required(SettingTable.churnZone))
        return []
    } catch {
        return [SettingFault(settings.origin(of: definition.key), "\(definition.key): \(error)")]
    }
}

private func topicConflicts(_ settings: ResolvedSettings) -> [SettingFault] {
    let copies = settings.required(SettingTable.replicationFactor)
    let needed = settings.required(SettingTable.minimumInSyncReplicas)
    guard needed > copies else { return [] }
    return [
        SettingFault(
            settings.origin(of: SettingTable.minimumInSyncReplicas.definition.key),
            "topics.min.insync.replicas (\(needed)) is greater than topics.replication.factor (\(copies)): nothing "
                + "could be written; lower the first or raise the second")
    ]
}

private func ingestConflicts(_ settings: ResolvedSettings) -> [SettingFault] {
    var faults = tlsConflicts(settings)
    if !settings.isGiven(SettingTable.apps.definition.key) {
        faults.append(
            SettingFault(
                "apps is not set: ingest must know which apps are yours; set it to the path of the JSON file"))
    }
    let isPlaintext = settings.required(SettingTable.ingestPlaintext)
    let hasNoTLS =
        !settings.isGiven(SettingTable.ingestCertificate.definition.key)
        && !settings.isGiven(SettingTable.ingestKey.definition.key)
    if hasNoTLS && !isPlaintext {
        faults.append(
            SettingFault(
                "ingest has no certificate: set ingest.tls.certificate and ingest.tls.key, or, behind a proxy that "
                    + "terminates TLS, ingest.plaintext = true"))
    }
    if !hasNoTLS && isPlaintext {
        faults.append(
            SettingFault(
                settings.origin(of: SettingTable.ingestPlaintext.definition.key),
                "ingest.plaintext is true, so the certificate that is set would not be used: remove one of the two"))
    }
    return faults
}

private func tlsConflicts(_ settings: ResolvedSettings) -> [SettingFault] {
    let hasCertificate = settings.isGiven(SettingTable.ingestCertificate.definition.key)
    let hasKey = settings.isGiven(SettingTable.ingestKey.definition.key)
    guard hasCertificate != hasKey else { return [] }
    let (given, missing) =
        hasCertificate
        ? ("ingest.tls.certificate", "ingest.tls.key") : ("ingest.tls.key", "ingest.tls.certificate")
    return [SettingFault(settings.origin(of: given), "\(given) is set and \(missing) is not; set both or none")]
}

/// Account data is private: without a token only this machine may send requests.
private func apiConflicts(_ settings: ResolvedSettings) -> [SettingFault] {
    let listen = settings.required(SettingTable.apiListen)
    guard !settings.isGiven(SettingTable.apiToken.definition.key), !listen.address.isLoopback else { return [] }
    return [
        SettingFault(
            settings.origin(of: SettingTable.apiListen.definition.key),
            "api.listen \(listen) can be reached from other machines, but api.token is not set; set the token, or "
                + "listen on 127.0.0.1")
    ]
}

private func consumptionConflicts(_ settings: ResolvedSettings) -> [SettingFault] {
    var faults = appleConflicts(settings)
    if !settings.isGiven(SettingTable.apps.definition.key) {
        faults.append(
            SettingFault(
                "apps is not set: the worker answers only for these apps; set it to the path of the JSON file"))
    }
    if settings.required(SettingTable.consumptionSend), !partsOfAppleKey.contains(where: settings.isGiven) {
        faults.append(
            SettingFault(
                "there is no App Store Server API key: set apple.issuer.id, apple.key.id and apple.key, or "
                    + "consumption.send = false to decide without sending"))
    }
    return faults
}

private let partsOfAppleKey = [SettingTable.appleIssuerId, SettingTable.appleKeyId, SettingTable.appleKey]
    .map(\.definition.key)

private func appleConflicts(_ settings: ResolvedSettings) -> [SettingFault] {
    let missing = partsOfAppleKey.filter { !settings.isGiven($0) }
    guard (1..<partsOfAppleKey.count).contains(missing.count) else { return [] }
    return [
        SettingFault("the App Store Server API key is incomplete: set \(missing.joined(separator: " and ")) as well")
    ]
}
