// The files that the settings of refund answers name, checked before anything starts.

package import Configuration
package import Consumption
package import Crypto
import Platform
import Settings

/// The contents of the files, which are valid. A part is nil if its setting is not given.
package struct ConsumptionFiles {
    package let policy: RefundPolicy?
    /// Signs calls to Apple.
    package let appleKey: SigningKey?
    /// PEM of a private certificate authority.
    package let appleAuthority: [UInt8]?

    /// Throws all faults of all files. No message contains a byte of the key.
    package init(_ configuration: Configuration) throws(ConfigurationFaults) {
        var faults: [SettingFault] = []
        var policy: RefundPolicy?
        do throws(ConfigurationFaults) {
            policy = try configuration.consumption.policyPath.map(readRefundPolicy)
        } catch {
            faults += error.faults
        }
        var key: SigningKey?
        var authority: [UInt8]?
        do throws(SettingFault) {
            key = try configuration.apple.key.map(readAppleKey)
        } catch {
            faults.append(error)
        }
        do throws(SettingFault) {
            authority = try configuration.apple.authorityPath.map(readAppleAuthority)
        } catch {
            faults.append(error)
        }
        guard faults.isEmpty else { throw ConfigurationFaults(faults: faults) }
        self.policy = policy
        appleKey = key
        appleAuthority = authority
    }
}

/// Throws all faults of the file, each with line and column.
package func readRefundPolicy(_ path: String) throws(ConfigurationFaults) -> RefundPolicy {
    let bytes: [UInt8]
    do throws(FileFault) {
        bytes = try readFile(path, limitBytes: RefundPolicy.limitBytes)
    } catch {
        throw ConfigurationFaults(faults: [SettingFault(place: "consumption.policy", "\(error)")])
    }
    do throws(PolicyFaults) {
        return try RefundPolicy.read(bytes, nearest: { nearestName(to: $0, among: $1) })
    } catch {
        throw ConfigurationFaults(faults: error.faults.map { SettingFault(place: path, "\($0)") })
    }
}

/// - Parameter setting: a path, or the text of the key itself.
private func readAppleKey(_ setting: String) throws(SettingFault) -> SigningKey {
    let isText = setting.hasPrefix("-----BEGIN")
    let pem: [UInt8]
    do throws(FileFault) {
        pem = isText ? Array(setting.utf8) : try readFile(setting)
    } catch {
        throw SettingFault(place: "apple.key", "\(error)")
    }
    let place = isText ? "apple.key" : "apple.key \(setting)"
    let key: SigningKey
    do throws(CertificateFault) {
        key = try SigningKey(pem: pem)
    } catch {
        throw SettingFault(place: place, "\(error); the key from App Store Connect is a file that ends in .p8")
    }
    guard key.curve == .p256 else {
        throw SettingFault(
            place: place, "the key is not on the curve P-256: is this the .p8 file of a key from App Store Connect?"
        )
    }
    return key
}

private func readAppleAuthority(_ path: String) throws(SettingFault) -> [UInt8] {
    do {
        let file = try readFile(path)
        // libcurl accepts only PEM.
        guard file.first != 0x30 else {
            throw CertificateFault("it is DER; write it as PEM (openssl x509 -inform der -in FILE -out FILE.pem)")
        }
        _ = try Certificate.read(file)
        return file
    } catch let error as CertificateFault {
        throw SettingFault(place: "apple.ca \(path)", "\(error)")
    } catch {
        throw SettingFault(place: "apple.ca", "\(error)")
    }
}
