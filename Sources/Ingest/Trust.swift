// What the settings say of whose signatures are taken.

public import AppStore
public import Configuration
import Crypto
import Platform
import Settings

extension VerificationPolicy {
    /// Apple Root CA - G3, what `verify.roots` adds, and the apps of `apps`; texts up to the size of the greatest body that
    /// ingest could ever have been told to take. A file that holds no certificate, or one to which no path can lead, is told
    /// of with its path.
    public init(_ configuration: Configuration) throws(ConfigurationFaults) {
        var roots = [AppleRoot.g3]
        var faults: [SettingFault] = []
        for path in configuration.verification.rootPaths {
            do throws(SettingFault) {
                roots += try trustedRoots(path)
            } catch {
                faults.append(error)
            }
        }
        guard faults.isEmpty else { throw ConfigurationFaults(faults: faults) }
        self.init(
            anchors: TrustAnchors(roots), apps: configuration.apps.isEmpty ? nil : configuration.apps)
        maxBytes = Configuration.Ingest.greatestBodyBytes
    }
}

private func trustedRoots(_ path: String) throws(SettingFault) -> [Certificate] {
    let certificates = try certificates(path)
    for (index, certificate) in certificates.enumerated() {
        let place = certificates.count == 1 ? path : "certificate \(index + 1) of \(path)"
        guard certificate.isAuthority else {
            throw SettingFault("verify.roots: \(place) is no authority's; name the root that signatures lead to")
        }
        guard certificate.isSelfSigned else {
            throw SettingFault(
                "verify.roots: \(place) is signed by another certificate than itself (an intermediate?); "
                    + "no chain ends there: name the root above it")
        }
    }
    return certificates
}

private func certificates(_ path: String) throws(SettingFault) -> [Certificate] {
    let file: [UInt8]
    do throws(FileFault) {
        file = try readFile(path)
    } catch {
        throw SettingFault("verify.roots: \(error)")
    }
    do throws(CertificateFault) {
        return try Certificate.read(file)
    } catch {
        throw SettingFault("verify.roots: \(path) is no certificate in PEM or DER: \(error)")
    }
}
