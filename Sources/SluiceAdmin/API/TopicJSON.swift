import SluiceBroker
import SluiceCommand
import SluiceWire

/// A topic in the API: the same members everywhere, with its streams and settings too where a request is about one topic.
enum TopicJSON {
  static func text(_ topic: TopicSnapshot) -> String { object(topic).text }

  static func detailed(_ topic: TopicSnapshot) -> String {
    var object = object(topic)
    var settings = JSONObject()
    for option in TopicOption.all {
      if let value = option.write(topic.settings) { settings.add(option.name, value) }
    }
    object.add("settings", settings)
    object.add("settingsStated", topic.isStated)
    object.add("subscribers", topic.subscriptions.map(subscriber))
    object.add("producers", topic.publications.map(producer))
    return object.text
  }

  private static func object(_ topic: TopicSnapshot) -> JSONObject {
    let summary = topic.summary
    var object = JSONObject()
    object.add("name", summary.topic)
    object.add(number: "epoch", summary.epoch)
    switch summary.ending {
    case nil: object.add("state", "open")
    case .finished: object.add("state", "finished")
    case .failure(let code, let message):
      object.add("state", "failed")
      var failure = JSONObject()
      failure.add("code", UInt64(code.rawValue))
      failure.add("message", message)
      object.add("failure", failure)
    }
    object.add("storage", summary.storage == .durable ? "durable" : "memory")
    object.add("flow", flow(topic.settings.flow))
    object.add(number: "firstOffset", summary.firstOffset)
    object.add(number: "nextOffset", summary.nextOffset)
    object.add(number: "records", summary.records)
    object.add(number: "bytes", summary.bytes)
    object.add("subscriptions", UInt64(summary.subscriptions))
    object.add("publications", UInt64(summary.publications))
    if topic.withoutProducers > 0 {
      object.add(seconds: "withoutProducersSeconds", milliseconds: topic.withoutProducers)
    }
    object.add(limit: "outstanding", topic.outstanding)
    object.add(number: "lag", topic.lag)
    object.add(seconds: "heldUpSeconds", milliseconds: topic.heldUp)
    // The subscriber that holds up producers longest.
    if let holder = topic.subscriptions.max(by: { $0.info.holding < $1.info.holding }),
      holder.info.holding > 0
    {
      object.add("holder", subscriber(holder))
    }
    object.add("holds", topic.holds.map(hold))
    object.add(number: "waitingForStorage", UInt64(topic.waitingForStorage))
    object.add("dropped", dropped(topic.dropped))
    object.add("traffic", traffic(topic.traffic))
    return object
  }

  /// Dropped records by retention limit, under the names of their settings.
  private static func dropped(_ dropped: DroppedRecords) -> JSONObject {
    var object = JSONObject()
    for limit in DroppedRecords.Limit.allCases {
      var amount = JSONObject()
      amount.add(number: "records", dropped[limit].records)
      amount.add(number: "bytes", dropped[limit].bytes)
      object.add(limit.option, amount)
    }
    return object
  }

  private static func flow(_ flow: TopicSettings.Flow?) -> String {
    switch flow {
    case .lossless: "lossless"
    case .fastest: "fastest"
    case .free, nil: "free"
    }
  }

  static func traffic(_ traffic: TopicTraffic) -> JSONObject {
    var object = JSONObject()
    object.add(number: "granted", traffic.granted)
    object.add(number: "received", traffic.received)
    object.add(number: "receivedBytes", traffic.receivedBytes)
    object.add(number: "acknowledged", traffic.acknowledged)
    object.add(number: "requested", traffic.requested)
    object.add(number: "sent", traffic.sent)
    object.add(number: "sentBytes", traffic.sentBytes)
    object.add(number: "missed", traffic.missed)
    object.add(seconds: "starvedSeconds", milliseconds: traffic.starved)
    object.add(seconds: "heldUpSeconds", milliseconds: traffic.heldUp)
    return object
  }

  /// The rest of a grant; nil for one without limit.
  private static func rest(of granted: UInt64, after used: UInt64) -> UInt64? {
    granted == .max ? nil : granted - min(used, granted)
  }

  private static func subscriber(_ subscription: SubscriptionSnapshot) -> JSONObject {
    let info = subscription.info
    var object = JSONObject()
    object.add(number: "connection", info.connection)
    object.add("stream", UInt64(info.stream))
    object.add("client", info.client)
    object.add("identity", subscription.identity)
    object.add("state", info.state == .replaying ? "replaying" : "live")
    object.add(number: "nextOffset", info.nextOffset)
    object.add(number: "lag", subscription.lag)
    object.add(limit: "granted", info.granted)
    object.add(number: "sent", info.sent)
    object.add(limit: "outstanding", rest(of: info.granted, after: info.sent))
    object.add(seconds: "holdingSeconds", milliseconds: info.holding)
    object.add("blocked", subscription.isBlocked)
    object.add("holdingLimit", HoldText.name(info.limit))
    object.add(share: "heldLastMinute", info.lastMinute)
    object.add(share: "heldLastFiveMinutes", info.lastFiveMinutes)
    return object
  }

  private static func hold(_ hold: TopicInfo.Hold) -> JSONObject {
    var object = JSONObject()
    object.add("reason", StorageText.reason(hold.reason))
    object.add(seconds: "holdingSeconds", milliseconds: hold.milliseconds)
    object.add(share: "heldLastMinute", hold.lastMinute)
    object.add(share: "heldLastFiveMinutes", hold.lastFiveMinutes)
    return object
  }

  private static func producer(_ publication: PublicationSnapshot) -> JSONObject {
    let info = publication.info
    var object = JSONObject()
    object.add(number: "connection", info.connection)
    object.add("stream", UInt64(info.stream))
    object.add("client", info.client)
    object.add("identity", publication.identity)
    object.add(limit: "granted", info.granted)
    object.add(number: "received", info.received)
    object.add(limit: "open", rest(of: info.granted, after: info.received))
    object.add(seconds: "waitingSeconds", milliseconds: info.waiting)
    object.add("waitReason", StorageText.reason(info.reason))
    return object
  }
}

/// A record in the API. Text is in `text`, other bytes are in `hex`, either cut to a limit; `size` is the whole number of bytes.
enum RecordJSON {
  /// - Parameter limit: bytes of the payload that are shown.
  static func object(_ record: RecordSnapshot, limit: Int) -> JSONObject {
    var object = JSONObject()
    object.add(number: "offset", record.offset)
    object.add("time", json: String(record.time))
    if let key = record.key { object.add("key", value(key, limit: 256)) }
    if !record.headers.isEmpty {
      object.add(
        "headers",
        record.headers.prefix(32).map { header in
          var object = value(header.value, limit: 256)
          object.add("name", String(decoding: header.name, as: UTF8.self))
          return object
        })
    }
    object.add("payload", value(record.payload, limit: limit))
    return object
  }

  private static func value(_ bytes: [UInt8], limit: Int) -> JSONObject {
    var object = JSONObject()
    let shown = bytes.prefix(limit)
    object.add(number: "size", bytes.count)
    if shown.count < bytes.count { object.add("cut", true) }
    if let text = text(shown, isCut: shown.count < bytes.count) {
      object.add("text", text)
    } else {
      object.add("hex", hex(shown))
    }
    return object
  }

  /// The bytes as text; nil if they aren't UTF-8 or have control characters. A character that the limit cuts through is left out.
  private static func text(_ bytes: ArraySlice<UInt8>, isCut: Bool) -> String? {
    for dropped in 0...(isCut ? min(3, bytes.count) : 0) {
      guard let text = String(validating: bytes.dropLast(dropped), as: UTF8.self) else { continue }
      let isReadable = text.unicodeScalars.allSatisfy { scalar in
        scalar.properties.generalCategory != .control || scalar == "\n" || scalar == "\r" || scalar == "\t"
      }
      return isReadable ? text : nil
    }
    return nil
  }

  private static func hex(_ bytes: ArraySlice<UInt8>) -> String {
    bytes.reduce(into: "") { text, byte in
      text += byte < 16 ? "0" : ""
      text += String(byte, radix: 16)
    }
  }
}
