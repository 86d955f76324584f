import SluiceCommand
import SluiceWire

/// Topics as objects of JSON, one a line. What has no limit is null.
enum TopicJSON {
  static func line(_ summary: TopicSummary) -> String { object(summary).text + "\n" }

  static func line(_ info: TopicInfo) -> String {
    var object = object(info.summary)
    object.add("replay_records", limit(info.settings.replayRecords))
    object.add("replay_bytes", limit(info.settings.replayBytes))
    object.add("replay_age_ms", limit(info.settings.replayAge))
    object.add("scope", setting("scope", info))
    object.add("flow", setting("flow", info))
    object.add("connect", setting("connect", info))
    object.add("buffer_records", limit(info.settings.bufferRecords))
    object.add("buffer_bytes", limit(info.settings.bufferBytes))
    object.add("without_subscribers", setting("without-subscribers", info))
    object.add("lag", setting("lag", info))
    object.add("auto_delete", info.settings.autoDelete ?? false)
    object.add("compact", info.settings.compact ?? false)
    object.add("sync", setting("sync", info))
    object.add("dropped", dropped(info.dropped))
    if info.storage.state != .none { object.add("store", store(info.storage)) }
    object.add("when_producer_lost", setting("when-producer-lost", info))
    object.add("settings_stated", info.isStated)
    object.add("without_producers_ms", info.withoutProducers)
    object.add("subscriptions", info.subscriptions.map { Self.object($0, info.summary) })
    object.add("publications", info.publications.map(Self.object))
    object.add("holds", info.holds.map(Self.object))
    return object.text + "\n"
  }

  /// Dropped records by retention limit, under the names of their settings.
  private static func dropped(_ dropped: DroppedRecords) -> JSONObject {
    var object = JSONObject()
    for limit in DroppedRecords.Limit.allCases {
      var amount = JSONObject()
      amount.add("records", dropped[limit].records)
      amount.add("bytes", dropped[limit].bytes)
      object.add(limit.option, amount)
    }
    return object
  }

  private static func store(_ storage: StorageStatus) -> JSONObject {
    var object = JSONObject()
    object.add("state", StorageText.state(storage.state))
    object.add("since_ms", storage.since)
    object.add("used_bytes", storage.used)
    object.add("limit_bytes", limit(storage.limit))
    return object
  }

  private static func object(_ summary: TopicSummary) -> JSONObject {
    var object = JSONObject()
    object.add("topic", summary.topic)
    object.add("state", TopicTable.state(summary))
    if case .failure(let code, let message) = summary.ending {
      object.add("failure_code", UInt64(code.rawValue))
      object.add("failure", message)
    }
    // A text: the number may be larger than the ones that JSON's readers keep exact.
    object.add("epoch", TopicTable.hexadecimal(summary.epoch))
    object.add("first_offset", summary.firstOffset)
    object.add("next_offset", summary.nextOffset)
    object.add("records", summary.records)
    object.add("bytes", summary.bytes)
    object.add("subscribers", UInt64(summary.subscriptions))
    object.add("producers", UInt64(summary.publications))
    object.add("storage", TopicTable.storage(summary))
    return object
  }

  private static func object(_ subscription: TopicInfo.Subscription, _ summary: TopicSummary) -> JSONObject {
    var object = JSONObject()
    object.add("client", subscription.client)
    object.add("connection", subscription.connection)
    object.add("state", TopicTable.subscriptionState(subscription))
    object.add("next_offset", subscription.nextOffset)
    object.add("behind", TopicTable.behind(subscription, summary))
    object.add("sent", subscription.sent)
    object.add("granted", limit(subscription.granted))
    object.add("holding_ms", subscription.holding)
    object.add("holding_limit", HoldText.name(subscription.limit))
    object.add(share: "held_last_minute", subscription.lastMinute)
    object.add(share: "held_last_five_minutes", subscription.lastFiveMinutes)
    return object
  }

  private static func object(_ hold: TopicInfo.Hold) -> JSONObject {
    var object = JSONObject()
    object.add("reason", StorageText.reason(hold.reason))
    object.add("holding_ms", hold.milliseconds)
    object.add(share: "held_last_minute", hold.lastMinute)
    object.add(share: "held_last_five_minutes", hold.lastFiveMinutes)
    return object
  }

  private static func object(_ publication: TopicInfo.Publication) -> JSONObject {
    var object = JSONObject()
    object.add("client", publication.client)
    object.add("connection", publication.connection)
    object.add("received", publication.received)
    object.add("granted", limit(publication.granted))
    object.add("waiting_ms", publication.waiting)
    object.add("wait_reason", StorageText.reason(publication.reason))
    return object
  }

  private static func setting(_ name: String, _ info: TopicInfo) -> String {
    TopicOption.all.first { $0.name == name }?.write(info.settings) ?? ""
  }

  private static func limit(_ value: UInt64?) -> UInt64? {
    value == TopicSettings.unlimited ? nil : value
  }
}
