// A request on its way through the proxy.

/// A request frame with the header fields that all versions have.
public struct KafkaRequest: Sendable {
    public let api: KafkaAPI
    public let version: Int16
    public let correlationID: Int32
    public let clientID: String?
    /// The whole frame without its length.
    public let bytes: [UInt8]

    /// nil if the frame is too short for a header, such as a SASL token before Kafka 1.0: it is forwarded unchanged.
    package init?(frame: [UInt8]) {
        var reader = WireReader(frame)
        do throws(WireFault) {
            api = KafkaAPI(try reader.number())
            version = try reader.number()
            correlationID = try reader.number()
        } catch {
            return nil
        }
        // Only version 0 of ControlledShutdown has no client id; clients do not send it.
        clientID = (try? reader.string()) ?? nil
        bytes = frame
    }

    /// Whether a text, such as a transactional id or a topic, occurs in the frame.
    public func contains(_ text: String) -> Bool {
        let needle = Array(text.utf8)
        guard !needle.isEmpty else { return true }
        guard bytes.count >= needle.count else { return false }
        return (0...bytes.count - needle.count).contains { start in
            bytes[start..<start + needle.count].elementsEqual(needle)
        }
    }
}

/// A broker's response without its length.
public struct KafkaResponse: Sendable, Equatable {
    /// The correlation id (4 bytes), then the body in the API's version.
    public let bytes: [UInt8]

    /// The number at a position of the frame; nil beyond the end. The error code of EndTxn up to version 2 is at 8,
    /// after the correlation id and the throttle time.
    public func int16(at position: Int) -> Int16? {
        guard position >= 0, position + 2 <= bytes.count else { return nil }
        return Int16(bitPattern: UInt16(bytes[position]) << 8 | UInt16(bytes[position + 1]))
    }
}
