// The files that the settings of ingest name, checked before anything starts.

package import AppStore
package import Configuration
package import HTTP
import Platform
import Settings

/// The policy for signatures, and the TLS certificate; nil: no certificate is set. Throws all faults of `verify.roots`,
/// `ingest.tls.certificate` and `ingest.tls.key`.
package func checkedPolicy(
    _ configuration: Configuration
) throws(ConfigurationFaults) -> (policy: VerificationPolicy, term: CertificateTerm?) {
    var faults: [SettingFault] = []
    var policy: VerificationPolicy?
    var term: CertificateTerm?
    do throws(ConfigurationFaults) {
        policy = try VerificationPolicy(configuration)
    } catch {
        faults += error.faults
    }
    do throws(SettingFault) {
        term = try certificateTerm(configuration.ingest)
    } catch {
        faults.append(error)
    }
    guard let policy, faults.isEmpty else { throw ConfigurationFaults(faults: faults) }
    return (policy, term)
}

/// nil: no certificate is set. A certificate without a key was refused before.
private func certificateTerm(_ ingest: Configuration.Ingest) throws(SettingFault) -> CertificateTerm? {
    guard let certificatePath = ingest.certificatePath, let keyPath = ingest.keyPath else { return nil }
    let identity: HTTPServer.Identity
    do throws(FileFault) {
        identity = HTTPServer.Identity(certificate: try readFile(certificatePath), key: try readFile(keyPath))
    } catch {
        throw SettingFault("ingest.tls.certificate, ingest.tls.key: \(error)")
    }
    do throws(HTTPServerFault) {
        return try identity.term()
    } catch {
        throw SettingFault("ingest.tls.certificate \(certificatePath), ingest.tls.key \(keyPath): \(error)")
    }
}
