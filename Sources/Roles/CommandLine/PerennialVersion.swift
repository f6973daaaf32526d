// The version of this program.

package enum PerennialVersion {
    package static let text = "0.2.0"

    /// The compiler, as far as a program can know: the greatest version that can be checked.
    package static var swift: String {
        #if compiler(>=6.5)
            "6.5 or later"
        #elseif compiler(>=6.4)
            "6.4"
        #elseif compiler(>=6.3)
            "6.3"
        #else
            "6.2"
        #endif
    }
}
