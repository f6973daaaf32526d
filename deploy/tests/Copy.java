import java.io.*;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.*;

/**
 * Copies topics into a file and back: partition, key, value, headers, timestamp and order stay. Runs from its source, with the jars of
 * Kafka: java -cp 'KAFKA_HOME/libs/*' Copy.java save|restore SERVERS FILE TOPIC...
 */
public class Copy {
    public static void main(String[] arguments) throws Exception {
        List<String> topics = Arrays.asList(arguments).subList(3, arguments.length);
        long count = arguments[0].equals("save") ? save(arguments[1], arguments[2], topics) : restore(arguments[1], arguments[2]);
        System.out.println(count + " records");
    }

    static long save(String servers, String file, List<String> topics) throws IOException {
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "isolation.level", "read_committed");
        long count = 0;
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                var out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(file)))) {
            List<TopicPartition> places = new ArrayList<>();
            for (String topic : topics)
                for (var partition : consumer.partitionsFor(topic)) places.add(new TopicPartition(topic, partition.partition()));
            consumer.assign(places);
            consumer.seekToBeginning(places);
            Map<TopicPartition, Long> ends = consumer.endOffsets(places);
            while (places.stream().anyMatch(place -> consumer.position(place) < ends.get(place))) {
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    out.writeUTF(record.topic());
                    out.writeInt(record.partition());
                    out.writeLong(record.timestamp());
                    write(out, record.key());
                    write(out, record.value());
                    var headers = record.headers().toArray();
                    out.writeInt(headers.length);
                    for (var header : headers) {
                        out.writeUTF(header.key());
                        write(out, header.value());
                    }
                    count++;
                }
            }
        }
        return count;
    }

    static long restore(String servers, String file) throws Exception {
        // Idempotent, as is Kafka's default, so that a retry changes no order.
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "acks", "all", "compression.type", "zstd");
        long count = 0;
        List<java.util.concurrent.Future<RecordMetadata>> written = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
                var in = new DataInputStream(new BufferedInputStream(new FileInputStream(file)))) {
            while (true) {
                String topic;
                try {
                    topic = in.readUTF();
                } catch (EOFException end) {
                    break;
                }
                int partition = in.readInt();
                long timestamp = in.readLong();
                byte[] key = read(in), value = read(in);
                var record = new ProducerRecord<>(topic, partition, timestamp, key, value);
                for (int left = in.readInt(); left > 0; left--) record.headers().add(new RecordHeader(in.readUTF(), read(in)));
                written.add(producer.send(record));
                count++;
            }
            producer.flush();
            for (var one : written) one.get();
        }
        return count;
    }

    static void write(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes == null ? -1 : bytes.length);
        if (bytes != null) out.write(bytes);
    }

    static byte[] read(DataInputStream in) throws IOException {
        int size = in.readInt();
        return size < 0 ? null : in.readNBytes(size);
    }
}
