import SluiceAccess
import SluiceIO
import SluiceWire

// What somebody should know of a connection, and of what its client does to topics.
extension Connection {
  var asClient: BrokerEvent.Client {
    BrokerEvent.Client(connection: id, name: clientName, identity: identity.name, peer: peer)
  }

  func report(_ event: BrokerEvent) { context.core.configuration.report(event) }
}
