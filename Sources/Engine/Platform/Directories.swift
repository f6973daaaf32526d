// Directories, and empty files that serve as marks.

import Glibc

/// Creates a directory and its missing parents, for this user only.
public func makeDirectories(_ path: String) throws(SystemFailure) {
    if mkdir(path, 0o700) == 0 { return }
    if errno == EEXIST {
        var status = stat()
        guard stat(path, &status) == 0 else { throw .last("look at \(path)") }
        if status.st_mode & S_IFMT == S_IFDIR { return }
        throw SystemFailure(operation: "create the directory \(path)", code: ENOTDIR)
    }
    let above = path.split(separator: "/").dropLast().joined(separator: "/")
    guard errno == ENOENT, !above.isEmpty else { throw .last("create the directory \(path)") }
    try makeDirectories(path.hasPrefix("/") ? "/\(above)" : above)
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .last("create the directory \(path)") }
}

/// The single name of an existing path: absolute, without links.
public func canonicalPath(_ path: String) throws(SystemFailure) -> String {
    guard let name = realpath(path, nil) else { throw .last("find \(path)") }
    defer { free(name) }
    return String(cString: name)
}

public func fileExists(_ path: String) -> Bool { access(path, F_OK) == 0 }

/// Creates an empty file if there is none.
public func makeFile(_ path: String) throws(SystemFailure) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw .last("create \(path)") }
    close(descriptor)
}

/// Does nothing if the file does not exist.
public func removeFile(_ path: String) throws(SystemFailure) {
    guard unlink(path) == 0 || errno == ENOENT else { throw .last("remove \(path)") }
}

/// The sorted names in a directory; empty if it does not exist.
public func filesOfDirectory(_ path: String) throws(SystemFailure) -> [String] {
    guard let directory = opendir(path) else {
        if errno == ENOENT { return [] }
        throw .last("open the directory \(path)")
    }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
}

/// Removes a directory with its contents. Links are removed, but not the files that they point to.
public func removeDirectory(_ path: String) throws(SystemFailure) {
    for name in try filesOfDirectory(path) {
        var status = stat()
        guard lstat("\(path)/\(name)", &status) == 0 else { throw .last("look at \(path)/\(name)") }
        if status.st_mode & S_IFMT == S_IFDIR {
            try removeDirectory("\(path)/\(name)")
        } else {
            try removeFile("\(path)/\(name)")
        }
    }
    guard rmdir(path) == 0 || errno == ENOENT else { throw .last("remove \(path)") }
}
