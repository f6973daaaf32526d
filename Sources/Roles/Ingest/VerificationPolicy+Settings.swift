// Whose signatures are accepted, according to the settings.

public import AppStore
public import Configuration
import Crypto
import Platform
import Settings

extension VerificationPolicy {
    /// Trusts Apple Root CA - G3, the certificates of `verify.roots`, and the apps of `apps`. Accepts texts up to the
    /// largest body size that ingest may be configured to accept. A file without a certificate, or with one that no
    /// chain can end at, is reported with its path.
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
            throw SettingFault("verify.roots: \(place) is not a CA certificate; name the root of the chains")
        }
        guard certificate.isSelfSigned else {
            throw SettingFault(
                "verify.roots: \(place) is not self-signed (an intermediate?); "
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
        throw SettingFault("verify.roots: \(path) is not a certificate in PEM or DER: \(error)")
    }
}
