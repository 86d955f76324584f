import SluiceAccess
import SluiceIO
import SluiceWire

/// What happens to a broker that somebody should know of. There is nothing in it of what clients publish, nor of what they prove themselves with.
public enum BrokerEvent: Hashable, Sendable {
  /// Whose connection something is about.
  public struct Client: Hashable, Sendable {
    /// The broker's number for the connection.
    public var connection: UInt64
    /// What the client calls itself; empty before it has.
    public var name: String
    /// Who it has proved to be; empty where nobody is asked, and before that is known.
    public var identity: String
    public var peer: SocketAddress

    public init(connection: UInt64, name: String, identity: String, peer: SocketAddress) {
      self.connection = connection
      self.name = name
      self.identity = identity
      self.peer = peer
    }
  }

  /// What somebody does to the broker's topics, rather than with them.
  public enum Administration: Hashable, Sendable {
    case createTopic
    case deleteTopic
    case connectTopic
    case disconnectTopic
    /// Of a durable cursor, or a group, of that name.
    case moveCursor(String)
    case deleteCursor(String)
  }

  // MARK: Connections

  /// The handshake is over.
  case opened(Client)
  /// - Parameters:
  ///   - reason: why, for people.
  ///   - code: what the client was told; nil where it wasn't the broker that ended it.
  ///   - milliseconds: how long there was the connection.
  case closed(Client, reason: String, code: ErrorCode?, milliseconds: UInt64)
  /// A connection was closed because all together had too much waiting, and it the most.
  case closedForBuffering(connection: UInt64, client: String, bytes: Int)

  // MARK: Who they are, and what they may

  /// The client has proved who it is: in the handshake, or anew.
  case authenticated(Client, by: Identity.Proof, isRenewal: Bool)
  /// It couldn't prove it, or nobody had the time to look.
  ///
  /// - Parameter claim: the user that it says it is; empty for tokens and certificates.
  case notAuthenticated(Client, claim: String, WireError, isRenewal: Bool)
  /// Its credentials have ended, and with them its connection.
  case expired(Client)
  /// Its identity may not be connected any more.
  case revoked(Client)
  /// - Parameter action: what it may not do to the topic: `publish`, `administer`.
  case denied(Client, action: String, topic: String)

  // MARK: Topics

  /// A topic was made; nil for the broker's doing.
  case topicCreated(Client?, topic: String)
  /// Its terminal event stands. Of a failure there is the code.
  case topicEnded(Client?, topic: String, failure: ErrorCode?)
  /// A topic was there for its users only, and is gone with them.
  case topicAbandoned(topic: String)
  /// Somebody has administered a topic, or tried to; nil where that was done.
  case administered(Client, Administration, topic: String, refusal: WireError?)

  /// Records that a group has given up wait in the group, because its dead-letter topic doesn't take them. Tried again, less and less often.
  case deadLettersWait(topic: String, group: String, deadLetters: String, WireError)

  // MARK: Limits

  /// Something was refused since there is too much of it; of a connection that never came to be, the peer is known.
  case refused(Client?, peer: SocketAddress, WireError)
  /// Records and connections take as much memory as they may: producers wait until there is less.
  case memoryReached(used: Int, ceiling: Int)
  /// There is room again, and producers go on.
  case memoryLeft(used: Int, ceiling: Int)
}
