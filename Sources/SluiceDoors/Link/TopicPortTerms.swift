import SluiceAccess
import SluiceWire

extension TopicPort {
  /// How the port uses the topic.
  struct Terms {
    var topic: String
    /// The identity, and the client name in the broker's lists.
    var identity: String
    var name: String
    /// The client identifier of the client for which the port acts with the identity's permissions; nil for a port that has all permissions for this topic
    /// and none for others.
    var user: String?
    /// The settings of the topic if the port creates it; nil for a port that only reads an existing topic.
    var settings: TopicSettings?
    var acknowledgement = PublishOpen.Acknowledgement.durable
    /// The producer ID that prevents duplicates in the topic; 0 for none.
    var producer: UInt64 = 0
    var reads = true
    /// Returns whether the port ends with this error; otherwise it retries.
    var isFinal: @Sendable (ErrorCode) -> Bool = { _ in false }

    /// The first frame on each connection.
    var hello: Hello {
      var carried = user.map { CarriedPermissions.encoded(client: $0) } ?? ""
      if user == nil {
        let rules = (try? TopicPattern(topic)).map { [Permissions.Rule(.all, on: $0)] } ?? []
        let owner = Identity(
          name: identity, proof: .none, permissions: Permissions(rules), carriesPermissions: true)
        carried = CarriedPermissions.encoded(owner) ?? ""
      }
      return Hello(
        maximumFrame: DoorLink.maximumFrame, keepalive: 0, name: name,
        credentials: .node(onBehalfOf: identity, carrying: carried))
    }
  }
}
