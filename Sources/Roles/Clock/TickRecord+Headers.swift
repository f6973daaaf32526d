// The headers of a tick, for both tickers.

import Log
import Records

extension TickRecord {
    static func headers(partition: Int32, _ time: Int64, app: String) -> [RecordHeader] {
        RecordHeader.all(id: id(partition: partition, time), schema: RecordType.tick.schema, app: app)
    }
}
