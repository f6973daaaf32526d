// A directory that lives as long as its owner.

import CTestKit
import Glibc
public import Platform

/// A new directory below `TMPDIR` (or `/tmp`). It is removed with everything in it when this object ends, or at exit.
public final class ScratchDirectory: Sendable {
    public let path: String

    public init(_ label: String) throws(SystemFailure) {
        let parent = environmentVariables().first { $0.name == "TMPDIR" && !$0.value.isEmpty }?.value ?? "/tmp"
        var template = Array("\(parent)/\(label)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw .last("create a directory in \(parent)") }
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        ExitCleanup.add(directory: path)
    }

    deinit {
        // A child that has just been killed may still add a file: then it is removed at exit.
        if perennial_remove_tree(path) == 0 { ExitCleanup.remove(directory: path) }
    }

    /// Writes a small file and returns its path.
    public func write(_ text: String, to name: String) throws(SystemFailure) -> String {
        let file = "\(path)/\(name)"
        // 0600: configurations contain passwords.
        let number = creat(file, 0o600)
        guard number >= 0 else { throw .last("create \(file)") }
        let descriptor = Descriptor(owning: number)
        if let failure = writeAll(Array(text.utf8), to: descriptor.number) { throw failure }
        return file
    }
}
