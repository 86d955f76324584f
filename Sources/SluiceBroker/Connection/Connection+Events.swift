import SluiceAccess
import SluiceIO
import SluiceWire

// What somebody should know of a connection, and of what its client does to topics.
extension Connection {
  var asClient: BrokerEvent.Client {
    BrokerEvent.Client(connection: id, name: clientName, identity: identity.name, peer: peer)
  }

  func report(_ event: BrokerEvent) { context.core.configuration.report(event) }

  /// Does what somebody has asked for who looks after a topic, and tells of it, however it ends; but that it isn't allowed was told.
  ///
  /// - Parameter body: returns false if it has to wait, and is done later.
  func administer(
    _ action: BrokerEvent.Administration, of topic: String, _ stream: UInt32,
    _ body: () throws(WireError) -> Bool
  ) {
    do {
      if try body() { report(.administered(asClient, action, topic: topic, refusal: nil)) }
    } catch {
      if error.code != .permissionDenied {
        report(.administered(asClient, action, topic: topic, refusal: error))
      }
      refuse(stream, Fault(error))
    }
  }
}
