// The files that settings of ingest name, judged before anything starts.

import AppStore
import Configuration
import HTTP
import Ingest
import Platform
import Settings

/// What the settings make of whose signatures are taken, once the certificate of TLS is known to be usable as well. Throws
/// everything that is wrong with `verify.roots`, `ingest.tls.certificate` and `ingest.tls.key`.
func checkedPolicy(_ configuration: Configuration) throws(ConfigurationFaults) -> VerificationPolicy {
    var faults: [SettingFault] = []
    var policy: VerificationPolicy?
    do throws(ConfigurationFaults) {
        policy = try VerificationPolicy(configuration)
    } catch {
        faults += error.faults
    }
    do throws(SettingFault) {
        try checkIdentity(configuration.ingest)
    } catch {
        faults.append(error)
    }
    guard let policy, faults.isEmpty else { throw ConfigurationFaults(faults: faults) }
    return policy
}

/// One without the other has been refused already.
private func checkIdentity(_ ingest: Configuration.Ingest) throws(SettingFault) {
    guard let certificatePath = ingest.certificatePath, let keyPath = ingest.keyPath else { return }
    let identity: HTTPServer.Identity
    do throws(FileFault) {
        identity = HTTPServer.Identity(certificate: try readFile(certificatePath), key: try readFile(keyPath))
    } catch {
        throw SettingFault("ingest.tls.certificate, ingest.tls.key: \(error)")
    }
    do throws(HTTPServerFault) {
        try identity.check()
    } catch {
        throw SettingFault("ingest.tls.certificate \(certificatePath), ingest.tls.key \(keyPath): \(error)")
    }
}
