/// Something that a broker counts, or measures: what is named `refused…` is requests and connections that a limit turned away.
public enum BrokerMetric: Int, CaseIterable, Sendable {
  /// Records that were published, and that were sent to subscribers; bytes of frames that were read and written.
  case recordsReceived
  case recordsSent
  case bytesReceived
  case bytesSent
  case topics

  /// Connections at present, and those that were ever accepted.
  case connections
  case connectionsAccepted
  /// Connections that were turned away because there were too many: in all, from their address, or of their identity.
  case refusedConnections
  case refusedConnectionsPerAddress
  case refusedConnectionsPerIdentity
  /// Connections that were reset at once because too many others were still about to close.
  case refusedDescriptors

  /// Connections that were ended by a deadline.
  case handshakeTimeouts
  case keepaliveTimeouts
  case idleTimeouts
  case writeTimeouts

  /// Clients, and new credentials of connections, that couldn't prove who they are; and those that weren't looked at, since too many waited.
  case failedAuthentications
  case refusedAuthentications
  /// Those that had to wait since others from the same address were wrong.
  case slowedAuthentications
  /// Connections whose credentials have expired, and whose identity may not connect any more.
  case expiredCredentials
  case revokedConnections
  /// Streams that were refused, or ended, since the client isn't allowed to have them.
  case deniedPermissions

  /// Subscriptions and publications at present, of all connections.
  case subscriptions
  case publications
  case refusedTopics
  case refusedTopicsPerConnection
  case refusedSubscriptions
  case refusedSubscriptionsPerConnection
  case refusedPublications
  case refusedPublicationsPerConnection
  case refusedPatterns
  case refusedMatches

  /// Bytes that wait in connections, in either direction.
  case bufferedBytes
  /// Connections that were closed because all together buffered too much.
  case closedForBuffering
  /// Streams that were refused because of how much came for them: places of patterns, the message of a failure.
  case refusedOversizes

  /// Bytes of records, of what waits in connections, and of what else is kept for clients, and what these may be before producers wait; 0 for no ceiling.
  case memoryUsed
  case memoryCeiling
  /// Bytes of topics, groups, cursors, producers' memories, subscriptions and publications; and how often none was made because of them.
  case keptBytes
  case refusedKept
  /// How often the ceiling was reached.
  case memoryCeilingReached
  /// Publications that were refused more because of it.
  case memoryHolds
  /// How often a connection wasn't read from because memory went beyond the ceiling all the same.
  case memoryPauses

  /// How often a publication, and how often a connection's subscriptions, waited for their identity's rate.
  case publishRateHolds
  case deliveryRateHolds

  /// How often durable topics were brought to disk, for all of them together, how often that failed, and bytes of records that were written.
  case commits
  case failedCommits
  /// Changes of topics that the store refused for what was in them, and that were set aside.
  case rejectedChanges
  case bytesStored
  /// Bytes of records that wait to be written.
  case storageBacklog

  /// What the kind of number is.
  public enum Kind: Sendable {
    /// Only ever grows.
    case counter
    /// Goes up and down.
    case gauge
  }

  public var kind: Kind {
    switch self {
    case .topics, .connections, .subscriptions, .publications, .bufferedBytes, .memoryUsed, .memoryCeiling,
      .keptBytes, .storageBacklog:
      .gauge
    default: .counter
    }
  }

  /// `refused_connections`: what it is called outside of the program.
  public var name: String {
    "\(self)".reduce(into: "") { name, letter in
      name += letter.isUppercase ? "_" + letter.lowercased() : String(letter)
    }
  }
}
