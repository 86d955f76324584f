import SluiceCommand
import SluiceMQTT
import SluiceWire

/// Topics as objects of JSON, one a line. A missing limit is null.
enum TopicJSON {
  static func line(_ summary: TopicSummary) -> String { object(summary).line }

  static func line(_ info: TopicInfo, _ more: JSON? = nil) -> String {
    let settings = info.settings
    func setting(_ name: String) -> JSON {
      .text(TopicOption.all.first { $0.name == name }?.write(settings) ?? "")
    }
    let details: JSON = [
      "replay_records": .limit(settings.replayRecords), "replay_bytes": .limit(settings.replayBytes),
      "replay_age_ms": .limit(settings.replayAge), "scope": setting("scope"), "flow": setting("flow"),
      "connect": setting("connect"), "buffer_records": .limit(settings.bufferRecords),
      "buffer_bytes": .limit(settings.bufferBytes), "without_subscribers": setting("without-subscribers"),
      "lag": setting("lag"), "auto_delete": .flag(settings.autoDelete ?? false),
      "compact": .flag(settings.compact ?? false), "sync": setting("sync"), "dropped": dropped(info.dropped),
      "store": info.storage.state == .none ? nil : store(info.storage),
      "when_producer_lost": setting("when-producer-lost"), "settings_stated": .flag(info.isStated),
      "without_producers_ms": .number(info.withoutProducers),
      "subscriptions": .array(info.subscriptions.map { object($0, info.summary) }),
      "publications": .array(info.publications.map(object)), "holds": .array(info.holds.map(object)),
      "consumer_count": .number(info.consumerCount), "consumers": .array(info.consumers.map(object)),
    ]
    let described = object(info.summary) + details
    return (more.map { described + $0 } ?? described).line
  }

  /// Dropped records by cause: the names of the limits' settings, and "trim".
  private static func dropped(_ dropped: DroppedRecords) -> JSON {
    .object(
      DroppedRecords.Cause.allCases.map { cause in
        (cause.name, ["records": .number(dropped[cause].records), "bytes": .number(dropped[cause].bytes)])
      })
  }

  private static func store(_ storage: StorageStatus) -> JSON {
    [
      "state": .text(StorageText.state(storage.state)), "since_ms": .number(storage.since),
      "used_bytes": .number(storage.used), "limit_bytes": .limit(storage.limit),
    ]
  }

  private static func object(_ summary: TopicSummary) -> JSON {
    let failure = summary.ending.failure
    return [
      "topic": .text(summary.topic),
      "mqtt_topic": MQTTTopicName.escapedName(ofBroker: summary.topic).map { .text($0) },
      "state": .text(summary.ending.state),
      "failure_code": failure.map { .number($0.code.rawValue) },
      "failure": failure.map { .text($0.message) },
      // A text, because JSON readers may round large numbers.
      "epoch": .text(TopicTable.hexadecimal(summary.epoch)), "first_offset": .number(summary.firstOffset),
      "next_offset": .number(summary.nextOffset), "records": .number(summary.records),
      "bytes": .number(summary.bytes), "subscribers": .number(summary.subscriptions),
      "producers": .number(summary.publications), "storage": .text(TopicTable.storage(summary)),
    ]
  }

  private static func object(_ subscription: TopicInfo.Subscription, _ summary: TopicSummary) -> JSON {
    [
      "client": .text(subscription.client), "connection": .number(subscription.connection),
      "node": .textUnlessEmpty(subscription.node),
      "state": .text(TopicTable.subscriptionState(subscription)),
      "next_offset": .number(subscription.nextOffset),
      "behind": .number(subscription.behind(summary)), "sent": .number(subscription.sent),
      "granted": .limit(subscription.granted), "holding_ms": .number(subscription.holding),
      "holding_limit": .text(HoldText.name(subscription.limit)),
      "held_last_minute": .share(subscription.lastMinute),
      "held_last_five_minutes": .share(subscription.lastFiveMinutes),
      "slowness": .text(SlownessText.name(subscription.slowness)), "slow_ms": .number(subscription.slow),
      "behind_ms": .number(subscription.age),
    ]
  }

  private static func object(_ hold: TopicInfo.Hold) -> JSON {
    [
      "reason": .text(StorageText.reason(hold.reason)), "holding_ms": .number(hold.milliseconds),
      "held_last_minute": .share(hold.lastMinute), "held_last_five_minutes": .share(hold.lastFiveMinutes),
    ]
  }

  private static func object(_ consumer: TopicInfo.Consumer) -> JSON {
    [
      "name": .text(consumer.name), "kind": .text(consumer.kind == .group ? "group" : "cursor"),
      "next_offset": .number(consumer.nextOffset), "lag": .number(consumer.lag),
      "lag_bytes": .limit(consumer.bytes), "lag_ms": .limit(consumer.age),
      "members": .number(consumer.members), "unacknowledged": .number(consumer.unacknowledged),
      "redeliveries": .number(consumer.redeliveries), "dead_letters": .number(consumer.deadLetters),
      "abandoned": .number(consumer.abandoned), "missed": .number(consumer.missed),
      "idle_ms": .number(consumer.idle), "delayed": .number(consumer.delayed),
      "next_retry_ms": .number(consumer.nextRetry),
    ]
  }

  private static func object(_ publication: TopicInfo.Publication) -> JSON {
    [
      "client": .text(publication.client), "connection": .number(publication.connection),
      "node": .textUnlessEmpty(publication.node),
      "received": .number(publication.received), "granted": .limit(publication.granted),
      "waiting_ms": .number(publication.waiting),
      "wait_reason": .text(StorageText.reason(publication.reason)),
    ]
  }
}

extension JSON {
  /// Null without a value, and for all ones, which mean no limit.
  static func limit(_ value: UInt64?) -> JSON { .number(value == TopicSettings.unlimited ? nil : value) }
}
