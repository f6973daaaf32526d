// The headers of a tick, for both tickers.

import Contract
import Log
import Records

extension TickRecord {
    static func headers(partition: Int32, _ time: Int64, app: String) -> [RecordHeader] {
        [
            RecordHeader(HeaderName.id, id(partition: partition, time)),
            RecordHeader(HeaderName.type, RecordType.tick.rawValue),
            RecordHeader(HeaderName.schema, RecordType.tick.schema), RecordHeader(HeaderName.app, app),
        ]
    }
}
