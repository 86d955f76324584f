import SluiceAccess
import SluiceIO
import SluiceTopics
import SluiceWire

/// An event that an operator may need to know of. It contains neither published data nor credentials.
public enum BrokerEvent: Hashable, Sendable {
  /// The client of the connection that an event is about.
  public struct Client: Hashable, Sendable {
    /// The broker's number for the connection.
    public var connection: UInt64
    /// The name that the client has chosen; empty until the broker receives it.
    public var name: String
    /// The authenticated identity; empty without authentication, and before it is complete.
    public var identity: String
    public var peer: SocketAddress

    public init(connection: UInt64, name: String, identity: String, peer: SocketAddress) {
      self.connection = connection
      self.name = name
      self.identity = identity
      self.peer = peer
    }
  }

  /// An administrative request of a client.
  public enum Administration: Hashable, Sendable {
    case createTopic
    case deleteTopic
    case connectTopic
    case disconnectTopic
    case setTopic
    case trimTopic
    /// One record, from a user that isn't a client of the protocol.
    case publishRecord
    /// A request for the connection of that number, which concerns no topic.
    case closeConnection(UInt64)
    /// Requests that concern the cluster: to drain a node or take that back, and to move a shard to a node, or to none in particular.
    case drainNode(String)
    case undrainNode(String)
    case moveShard(UInt32, node: String)
    /// A request for the durable cursor, or the group, of that name.
    case moveCursor(String)
    case deleteCursor(String)
    /// A request to restore that many states of producers or groups of the topic.
    case restoreStates(Int)
  }

  // MARK: Connections

  /// The handshake is complete.
  case opened(Client)
  /// - Parameters:
  ///   - reason: the reason as text.
  ///   - code: the error that the broker sent to the client, or that the client's gateway found; nil when the broker didn't end the connection.
  ///   - milliseconds: the age of the connection.
  case closed(Client, reason: String, code: ErrorCode?, milliseconds: UInt64)
  /// A connection was closed because all connections together buffered too much, and this one the most.
  case closedForBuffering(connection: UInt64, client: String, bytes: Int)

  // MARK: Authentication and permissions

  /// The client has proved its identity: in the handshake, or to renew its credentials.
  case authenticated(Client, by: Identity.Proof, isRenewal: Bool)
  /// The client couldn't prove its identity, or too many attempts waited.
  ///
  /// - Parameter claim: the user name that the client has sent; empty for tokens and certificates.
  case notAuthenticated(Client, claim: String, WireError, isRenewal: Bool)
  /// The client's credentials have expired, and its connection is closed.
  case expired(Client)
  /// The client's identity may no longer connect.
  case revoked(Client)
  /// - Parameter action: the action that the client isn't permitted to perform on the topic: `publish`, `administer`.
  case denied(Client, action: String, topic: String)

  // MARK: Topics

  /// A topic was created, by the broker itself when the client is nil.
  case topicCreated(Client?, topic: String)
  /// A topic has its terminal event. `failure` is the code of a failure.
  case topicEnded(Client?, topic: String, failure: ErrorCode?)
  /// A topic with automatic deletion was deleted because it was unused.
  case topicAbandoned(topic: String)
  /// A client has administered a topic, or tried to; `refusal` is nil when it succeeded.
  case administered(Client, Administration, topic: String, refusal: WireError?)

  /// Dead letters wait in their group because the dead-letter topic rejects them. The group retries with a growing delay.
  case deadLettersWait(topic: String, group: String, deadLetters: String, WireError)

  // MARK: Limits

  /// A limit has rejected a request or a connection; a rejected connection has no client, only a peer.
  case refused(Client?, peer: SocketAddress, WireError)
  /// Memory has reached its ceiling: producers wait until less is used.
  case memoryReached(used: Int, ceiling: Int)
  /// Memory is below its ceiling again, and producers continue.
  case memoryLeft(used: Int, ceiling: Int)
}
