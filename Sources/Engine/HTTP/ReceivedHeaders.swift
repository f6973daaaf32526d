// The headers of a request, read a second time where the library has left them in its buffer.

import CMicroHTTPD
import Glibc
import Platform

struct ReceivedHeaders {
    private(set) var headers = HTTPHeaders()
    private(set) var hasFoldedLine = false
    /// A line continues behind a zero byte: C does not see the rest, but other programs would. A line that begins with
    /// zero bytes ends the head for the library (0.9.75), but not for others. From 1.0 on the library itself refuses a
    /// head with a zero byte; `HeadCheck` tries that.
    private(set) var hasHiddenBytes = false
    /// Address where the version or the last value ended.
    private var lastEnd: UnsafePointer<CChar>?

    /// `head` is the start of the head in the buffer. The version, unless it is empty, and all lines are in the same
    /// buffer.
    init(of handle: ConnectionHandle, head: UnsafePointer<CChar>, version: UnsafePointer<CChar>) {
        lastEnd = version.pointee == 0 ? nil : version + strlen(version)
        withUnsafeMutablePointer(to: &self) { received in
            _ = MHD_get_connection_values(handle.pointer, .HEADER_KIND, appendHeader, received)
        }
        checkGap(to: head + perennial_httpd_head_bytes(handle.pointer), lineEnds: 2)
    }

    /// Between two lines there is exactly one line end, whose CR and LF the library has replaced by zero bytes, and
    /// otherwise only blanks. After the last line the end of the empty line follows too.
    private mutating func checkGap(to next: UnsafePointer<CChar>, lineEnds: Int) {
        guard RawHead.isOverwritten, var place = lastEnd else { return }
        var bytes = 0
        while place < next {
            switch place.pointee {
            case 0x20, 0x09: break
            case 0, 0x0D, 0x0A: bytes += 1
            default:
                hasHiddenBytes = true
                return
            }
            place += 1
        }
        if bytes > 2 * lineEnds { hasHiddenBytes = true }
    }

    fileprivate mutating func add(_ name: UnsafePointer<CChar>, _ value: UnsafePointer<CChar>?) {
        checkGap(to: name, lineEnds: 1)
        headers.add(String(cString: name), value.map { String(cString: $0) } ?? "")
        // A line that is continued in the next one (0.9.75): the library takes the continuation for the end of the
        // *name*, which it copies to another place. For all other lines, name and value stay where they were received,
        // with only blanks and the colon (now NUL) between them. So "Transfer-Encoding:\r\n chunked" would be no
        // transfer encoding here, but would be one for other programs.
        guard let value else { return }
        var end = name + strlen(name)
        while end < value, [0, 0x20, 0x09].contains(end.pointee) { end += 1 }
        if end != value { hasFoldedLine = true }
        lastEnd = value + strlen(value)
    }
}

private func appendHeader(
    context: UnsafeMutableRawPointer?, kind: MHD_ValueKind, name: UnsafePointer<CChar>?, value: UnsafePointer<CChar>?
) -> MHD_Result {
    guard let context, let name else { return .NO }
    context.assumingMemoryBound(to: ReceivedHeaders.self).pointee.add(name, value)
    return .YES
}
