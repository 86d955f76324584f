import SluiceAccess
import SluiceMQTT
import SluiceWire

// What the client may read. The broker delivers no other records; this is for what it can't know: which answer SUBSCRIBE gets, as the broker refuses no pattern, and
// which topics retained messages are of, which are all records of one.
extension MQTTConnection {
  static let unreadable = MQTTError(
    .notAuthorized, "the client may not subscribe to any topic that the topic filter selects")

  /// Whether a subscription may stand: there could be a topic that it selects and that the client may read.
  ///
  /// A session that goes on keeps its subscriptions: they get messages once the client may have them again. Those that the client asks for again are looked at.
  func mayHave(_ request: MQTTSubscriptionRequest) -> Bool {
    let isKept = request.isResumed && subscriptions[request.number] == nil
    guard !isKept, let permissions = link.permissions else { return true }
    return permissions.requireReach(of: request.patterns.compactMap { try? TopicPattern($0) })
  }

  /// Whether a subscription may have messages of a topic, by its name for the broker.
  func mayRead(_ topic: String) -> Bool { link.permissions?.matchesTopics(named: topic) ?? true }
}
