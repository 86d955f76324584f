import SluiceBroker
import SluiceCommand
import SluiceMQTT
import SluiceWire

/// A topic in the API. All answers contain the same members; an answer about a single topic also contains its streams and settings.
enum TopicJSON {
  /// The topics behind `after`, in the order of their names' bytes, and whether more follow.
  ///
  /// - Parameter node: the node of a cluster that owns them; nil for a broker of one node.
  static func list(_ snapshot: BrokerSnapshot, after: String, limit: Int, node: String?) -> JSON {
    let topics = snapshot.topics.drop { !NameSpan.precedes(after, $0.summary.topic) }
    return [
      "topics": .array(topics.prefix(limit).map(object)), "more": .flag(topics.count > limit),
      "count": .exact(snapshot.topics.count), "node": node.map { .text($0) },
    ]
  }

  static func detailed(_ topic: TopicSnapshot) -> JSON {
    object(topic) + [
      "settings": TopicOption.json(topic.settings),
      "defaultSettings": TopicOption.json(BrokerConfiguration.standardTopic(in: topic.summary.storage)),
      "settingsStated": .flag(topic.isStated),
      "subscribers": .array(topic.subscriptions.map(subscriber)),
      "producers": .array(topic.publications.map(producer)),
      "consumers": .array(topic.consumers.furthest.map { ConsumerJSON.object($0) }),
    ]
  }

  static func object(_ topic: TopicSnapshot) -> JSON {
    let summary = topic.summary
    let isWithoutProducers = topic.withoutProducers > 0
    // The subscriber that has blocked producers for the longest time.
    let holder = topic.subscriptions.max { $0.info.holding < $1.info.holding }
    let laggard = topic.subscriptions.max { $0.lag < $1.lag }
    return [
      "name": .text(summary.topic),
      "mqttName": MQTTTopicName.escapedName(ofBroker: summary.topic).map { .text($0) },
      "epoch": .exact(summary.epoch), "state": .text(summary.ending.state),
      "failure": summary.ending.failure.map {
        ["code": .number($0.code.rawValue), "message": .text($0.message)]
      }, "storage": .text(summary.storage == .durable ? "durable" : "memory"),
      "flow": .text(flow(topic.settings.flow)), "firstOffset": .exact(summary.firstOffset),
      "nextOffset": .exact(summary.nextOffset), "records": .exact(summary.records),
      "bytes": .exact(summary.bytes), "subscriptions": .number(summary.subscriptions),
      "publications": .number(summary.publications),
      "withoutProducersSeconds": isWithoutProducers ? .seconds(milliseconds: topic.withoutProducers) : nil,
      "outstanding": .limit(topic.outstanding), "lag": .exact(topic.lag),
      "consumerLag": ConsumerJSON.summary(topic.consumers),
      // The subscriber with the largest lag.
      "laggard": laggard.flatMap { $0.lag > 0 ? subscriber($0) : nil },
      "heldUpSeconds": .seconds(milliseconds: topic.heldUp),
      "holder": holder.flatMap { $0.info.holding > 0 ? subscriber($0) : nil },
      "holds": .array(topic.holds.map(hold)), "waitingForStorage": .exact(topic.waitingForStorage),
      "dropped": dropped(topic.dropped), "traffic": traffic(topic.traffic),
    ]
  }

  /// Dropped records by cause: the names of the limits' settings, and "trim".
  private static func dropped(_ dropped: DroppedRecords) -> JSON {
    .object(
      DroppedRecords.Cause.allCases.map { cause in
        (cause.name, ["records": .exact(dropped[cause].records), "bytes": .exact(dropped[cause].bytes)])
      })
  }

  private static func flow(_ flow: TopicSettings.Flow?) -> String {
    switch flow {
    case .lossless: "lossless"
    case .fastest: "fastest"
    case .free, nil: "free"
    }
  }

  private static func traffic(_ traffic: TopicTraffic) -> JSON {
    [
      "granted": .exact(traffic.granted), "received": .exact(traffic.received),
      "receivedBytes": .exact(traffic.receivedBytes), "acknowledged": .exact(traffic.acknowledged),
      "requested": .exact(traffic.requested), "sent": .exact(traffic.sent),
      "sentBytes": .exact(traffic.sentBytes), "missed": .exact(traffic.missed),
      "starvedSeconds": .seconds(milliseconds: traffic.starved),
      "heldUpSeconds": .seconds(milliseconds: traffic.heldUp),
    ]
  }

  /// The rest of a grant; nil for an unlimited one.
  private static func rest(of granted: UInt64, after used: UInt64) -> UInt64? {
    granted == .max ? nil : granted - min(used, granted)
  }

  private static func subscriber(_ subscription: SubscriptionSnapshot) -> JSON {
    let info = subscription.info
    return [
      "connection": .exact(info.connection), "node": info.node.isEmpty ? nil : .text(info.node),
      "stream": .number(info.stream), "client": .text(info.client), "identity": .text(subscription.identity),
      "door": .text(subscription.door.rawValue),
      "group": subscription.group.map { .text($0) },
      "state": .text(info.state == .replaying ? "replaying" : "live"), "nextOffset": .exact(info.nextOffset),
      "lag": .exact(subscription.lag), "granted": .limit(info.granted), "sent": .exact(info.sent),
      "outstanding": .limit(rest(of: info.granted, after: info.sent)),
      "holdingSeconds": .seconds(milliseconds: info.holding), "blocked": .flag(subscription.isBlocked),
      "blockedSeconds": .seconds(milliseconds: subscription.blocked),
      "starvedSeconds": .seconds(milliseconds: subscription.starved),
      "lagSeconds": .seconds(milliseconds: subscription.age),
      "slowness": .text(SlownessText.name(info.slowness)), "slowSeconds": .seconds(milliseconds: info.slow),
      "holdingLimit": .text(HoldText.name(info.limit)), "heldLastMinute": .share(info.lastMinute),
      "heldLastFiveMinutes": .share(info.lastFiveMinutes),
    ]
  }

  private static func hold(_ hold: TopicInfo.Hold) -> JSON {
    [
      "reason": .text(StorageText.reason(hold.reason)),
      "holdingSeconds": .seconds(milliseconds: hold.milliseconds), "heldLastMinute": .share(hold.lastMinute),
      "heldLastFiveMinutes": .share(hold.lastFiveMinutes),
    ]
  }

  private static func producer(_ publication: PublicationSnapshot) -> JSON {
    let info = publication.info
    return [
      "connection": .exact(info.connection), "node": info.node.isEmpty ? nil : .text(info.node),
      "stream": .number(info.stream), "client": .text(info.client), "identity": .text(publication.identity),
      "door": publication.door.map { .text($0.rawValue) },
      "granted": .limit(info.granted),
      "received": .exact(info.received), "open": .limit(rest(of: info.granted, after: info.received)),
      "waitingSeconds": .seconds(milliseconds: info.waiting),
      "waitReason": .text(StorageText.reason(info.reason)),
    ]
  }
}
