import SluiceIO
import SluiceNATS
import SluiceWire

/// The settings with which a node takes part in a cluster.
public struct ClusterOptions: Sendable {
  /// The node's name: from 1 to 64 letters, digits, `-` and `_`. No two nodes may have the same.
  public var name: String
  /// The address at which clients and other nodes reach it, as `HOST:PORT`.
  public var advertisedAddress: String
  /// The broker's version, for operators. Without blanks.
  public var version = ""
  /// The servers of the engine.
  public var engine: [NATSAddress]
  /// The options of the connection to the engine. Keepalive is 1 s by default.
  public var nats = ClusterOptions.defaultNATS
  /// The number of shards of a new cluster, from 1 to 65,536. An existing cluster keeps its number. Default: 64.
  public var shards = ClusterOptions.standardShards
  /// Copies of the stream with leases and the directory. Default: 3.
  public var replicas = 3
  /// The most shards that a node hands over at a time, or one in 32 of its shards if that is more. The engine stores the messages of several moves one after
  /// another, so each topic pauses for longer the more shards move together with its own. Default: 1.
  public var maximumMoves = 1
  public var times = LeaseTimes()
  /// Joins even if the engine may lose data, or can't be queried about it.
  public var engineUnsafe = false
  /// How long the engine keeps the name of a node that has left; in whole seconds. Default: 1 hour.
  public var nodeRetention = Duration.seconds(3_600)

  public init(name: String, advertisedAddress: String, engine: [NATSAddress]) {
    self.name = name
    self.advertisedAddress = advertisedAddress
    self.engine = engine
  }

  static let standardShards = 64

  public static var defaultNATS: NATSOptions {
    var options = NATSOptions()
    options.pingInterval = .seconds(1)
    options.pingTimeout = .seconds(1)
    options.connectTimeout = .seconds(2)
    return options
  }

  /// - Throws: ``ClusterError`` for an invalid name, address or number.
  func check() throws(ClusterError) {
    guard NodeName.isValid(name) else {
      throw ClusterError(
        "'\(name)' can't be the name of a node: use from 1 to 64 letters, digits, '-' and '_'")
    }
    guard !advertisedAddress.isEmpty, advertisedAddress.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw ClusterError(
        "'\(advertisedAddress)' can't be a node's address: write HOST:PORT, as clients and other nodes reach it"
      )
    }
    guard version.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw ClusterError("'\(version)' can't be a version: it has a blank")
    }
    guard (1...65_536).contains(shards) else {
      throw ClusterError("a cluster has from 1 to 65536 shards, not \(shards)")
    }
    guard times.margin < times.lease, times.renewal < times.lease - times.margin else {
      throw ClusterError("the time between renewals has to be shorter than the lease less its margin")
    }
  }
}

/// Invalid settings of a node.
public struct ClusterError: Error, Hashable, Sendable, CustomStringConvertible {
  public let description: String

  init(_ description: String) {
    self.description = description
  }
}
