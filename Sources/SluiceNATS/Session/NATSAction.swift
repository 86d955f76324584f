/// The client's reaction to an event.
public enum NATSAction {
  case none

  // The connection
  /// Open a connection; then call ``NATSSession/opened(isSecure:credentials:at:)`` or ``NATSSession/lost(_:at:)``.
  case connect(NATSAddress, certificateName: String)
  /// Add TLS to the connection; then call ``NATSSession/secured(at:)`` or ``NATSSession/lost(_:at:)``.
  case secure(NATSAddress, certificateName: String)
  /// Drop the connection, or the attempt to connect. ``NATSSession/lost(_:at:)`` isn't called for it.
  case disconnect
  /// The server has accepted the credentials: messages and requests can be sent, and subscriptions are in place.
  case ready(NATSServerInfo)
  /// The connection, or an attempt to connect, has failed. The client continues to look for a server.
  case interrupted(NATSError)
  /// The server is about to stop. The client moves to another one as soon as its requests are answered.
  case lameDuck(server: String)
  /// The client has ended.
  case closed(NATSError)

  // Messages
  /// A message of a subscription. Valid during the call only.
  case deliver(NATSMessageView)
  /// A subscription has ended: its limit of messages is reached, or the server has rejected it.
  case subscriptionEnded(UInt64, NATSError?)
  /// An answer to a request; the request has ended if it waited for one answer. Valid during the call only.
  case answer(UInt64, NATSMessageView)
  /// A request has failed.
  case failed(UInt64, NATSError)

  /// In order.
  case several([NATSAction])

  /// All actions in order; those of ``several(_:)`` one by one.
  init(_ actions: [NATSAction]) {
    switch actions.count {
    case 0: self = .none
    case 1: self = actions[0]
    default: self = .several(actions)
    }
  }
}
