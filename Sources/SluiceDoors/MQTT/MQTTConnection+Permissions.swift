import SluiceAccess
import SluiceMQTT
import SluiceWire

// Checks the client's read permissions. The broker itself delivers no other records. These checks cover two cases that it can't: SUBSCRIBE needs an error
// although the broker refuses no pattern, and all retained messages are records of one topic.
extension MQTTConnection {
  static let unreadable = MQTTError(
    .notAuthorized, "the client may not subscribe to any topic that the topic filter selects")

  /// Returns whether a subscription is permitted: there could be a topic that it selects and that the client may read.
  ///
  /// Subscriptions of a resumed session are kept: they get messages again once they are permitted. If the client subscribes again, the check applies.
  func mayHave(_ request: MQTTSubscriptionRequest) -> Bool {
    let isKept = request.isResumed && subscriptions[request.number] == nil
    guard !isKept, let permissions = link.permissions else { return true }
    return permissions.requireReach(of: request.patterns.compactMap { try? TopicPattern($0) })
  }

  /// Returns whether a subscription may get messages of a topic, given the broker's name of it.
  func mayRead(_ topic: String) -> Bool { link.permissions?.matchesTopics(named: topic) ?? true }
}
