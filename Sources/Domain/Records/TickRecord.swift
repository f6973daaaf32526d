// The record that moves a partition's clock.

internal import JSON

public enum TickRecord {
    /// `{"v":1,"tick":1771000000000}`
    public static func value(_ milliseconds: Int64) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { record in
            record.member("v", RecordType.tick.version)
            record.member("tick", milliseconds)
        }
        return writer.bytes
    }

    /// `tick-<partition>-<ms>`. A tick has no key.
    public static func id(partition: Int32, _ milliseconds: Int64) -> String { "tick-\(partition)-\(milliseconds)" }
}
