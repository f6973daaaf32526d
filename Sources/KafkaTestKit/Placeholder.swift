enum KafkaTestKitPlaceholder {}
