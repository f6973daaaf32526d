// The root that Apple's signatures lead to.

public import Crypto

public enum AppleRoot {
    /// Apple Root CA - G3.
    public static let g3: Certificate = { fatalError("to be written") }()
}
