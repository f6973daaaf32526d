import KafkaTestKit
import Platform
import Testing

@Suite struct `An output file` {
    private let scratch: ScratchDirectory
    init() throws { scratch = try ScratchDirectory("perennial-output") }

    @Test func `has the lines that were handed over, and nothing of what it held before`() throws {
        let path = try scratch.write("old and longer than what follows\n", to: "lines")
        let file = try OutputFile(path: path)
        #expect(try readFile(path).isEmpty)
        try file.append(line: Array("one".utf8))
        #expect(try readFile(path).isEmpty)
        try file.flush()
        try file.append(line: [])
        try file.flush()
        #expect(try readFile(path) == Array("one\n\n".utf8))
    }

    @Test func `hands over many lines by itself`() throws {
        let path = "\(scratch.path)/many"
        let file = try OutputFile(path: path)
        for _ in 0..<70 { try file.append(line: [UInt8](repeating: 120, count: 1023)) }
        #expect(try readFile(path).count == 64 * 1024)
    }

    @Test func `says why it cannot be written`() throws {
        let fault = #expect(throws: OutputFault.self) { try OutputFile.write([1], to: "\(scratch.path)/no/file") }
        #expect(fault?.description == "cannot write \(scratch.path)/no/file: No such file or directory")
        #expect(throws: OutputFault.self) { try OutputFile.write([1], to: "/dev/full") }
        #expect(throws: OutputFault.self) { try OutputFile.write([1], to: scratch.path) }
    }

    @Test func `finds its directory made, also when it was there`() throws {
        let path = "\(scratch.path)/folder"
        try makeDirectory(path)
        try makeDirectory(path)
        try OutputFile.write([1], to: "\(path)/file")
        #expect(throws: OutputFault.self) { try makeDirectory("\(path)/file") }
        #expect(throws: OutputFault.self) { try makeDirectory("\(path)/no/folder") }
    }
}
