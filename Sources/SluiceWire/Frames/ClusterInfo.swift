/// CLUSTER_INFO: a node's view of its cluster at one moment. Answers ``ClusterShow``.
///
/// ```
/// string name · string unreadiness · structure engine · u8 more nodes (0 or 1) · list of nodes · u32 shard count ·
/// u8 more shards (0 or 1) · list of shards · list of numbers
/// ```
public struct ClusterInfo: LaidOutFrame {
  public static let type = FrameType.clusterInfo

  /// The name of the node that answers.
  public var name: String
  /// Why the node isn't ready to serve, in a sentence; empty when it is.
  public var unreadiness: String
  public var engine: Engine
  /// True when there are nodes after the last of this page.
  public var moreNodes: Bool
  /// Sorted by name.
  public var nodes: [Node]
  /// How many shards the cluster has; 0 before the node knows.
  public var shardCount: UInt32
  /// True when there are shards after the last of this page.
  public var moreShards: Bool
  /// In the order of their numbers.
  public var shards: [Shard]
  /// Counters of the node since its start, by the names that they have in its metrics.
  public var numbers: [BrokerInfo.Number]

  public init(
    name: String, unreadiness: String, engine: Engine, moreNodes: Bool = false, nodes: [Node],
    shardCount: UInt32, moreShards: Bool = false, shards: [Shard], numbers: [BrokerInfo.Number] = []
  ) {
    self.name = name
    self.unreadiness = unreadiness
    self.engine = engine
    self.moreNodes = moreNodes
    self.nodes = nodes
    self.shardCount = shardCount
    self.moreShards = moreShards
    self.shards = shards
    self.numbers = numbers
  }

  /// The name of the number that says how long the engine took lately to store commits of a shard, in microseconds. A node reports its own shards in it.
  public static func shardCommitLatency(_ shard: Int) -> String { "commit_microseconds.\(shard)" }

  /// The number of that name; nil when the node doesn't have it.
  public subscript(name: String) -> UInt64? {
    numbers.first { $0.name == name }?.value
  }

  public static let layout = FrameLayout(
    Self.init, Field.string("CLUSTER_INFO name", limit: Limits.name, \Self.name),
    Field.string("CLUSTER_INFO unreadiness", limit: Limits.message, \Self.unreadiness),
    Field.structure("CLUSTER_INFO engine", \Self.engine, Engine.layout),
    Field.flag("CLUSTER_INFO more nodes", \Self.moreNodes),
    Field.list("nodes", \Self.nodes, Node.layout),
    Field.integer("CLUSTER_INFO shard count", \Self.shardCount),
    Field.flag("CLUSTER_INFO more shards", \Self.moreShards),
    Field.list("shards", \Self.shards, Shard.layout),
    Field.list("numbers", \Self.numbers, BrokerInfo.Number.layout))
}

extension ClusterInfo {
  /// The engine, as the node that answers sees it.
  ///
  /// ```
  /// u8 connected (0 or 1) · u8 unsafe (0 or 1) · string server · u64 commit latency · list of problems
  /// ```
  public struct Engine: Hashable, Sendable {
    public var isConnected: Bool
    /// The node uses an engine that may lose data, because it was configured to.
    public var isUnsafe: Bool
    /// The server that the node is connected to; empty before the first connection.
    public var server: String
    /// How long the engine took to store the node's last message, in microseconds; all ones before the first.
    public var commitLatency: UInt64
    /// Why the engine isn't good enough, or can't be reached: a sentence each.
    public var problems: [String]

    public init(
      isConnected: Bool, isUnsafe: Bool = false, server: String = "", commitLatency: UInt64 = .max,
      problems: [String] = []
    ) {
      self.isConnected = isConnected
      self.isUnsafe = isUnsafe
      self.server = server
      self.commitLatency = commitLatency
      self.problems = problems
    }

    static let layout = FrameLayout(
      Self.init, Field.flag("engine connected", \Self.isConnected),
      Field.flag("engine unsafe", \Self.isUnsafe),
      Field.string("engine server", limit: Limits.name, \Self.server),
      Field.integer("engine commit latency", \Self.commitLatency),
      Field.list("engine problems", \Self.problems, problemLayout))

    /// ```
    /// string problem
    /// ```
    private static let problemLayout = FrameLayout(
      { (text: String) in text }, Field<String, String>.string("engine problem", limit: Limits.message) { $0 }
    )
  }

  /// A node.
  ///
  /// ```
  /// string name · string address · string version · u8 state · u32 shards · u64 silence · string problem
  /// ```
  public struct Node: Hashable, Sendable {
    /// The number is the one on the wire; new numbers may follow.
    public struct State: RawRepresentable, Hashable, Sendable {
      public var rawValue: UInt8

      public init(rawValue: UInt8) {
        self.rawValue = rawValue
      }

      public static let live = State(rawValue: 0)
      /// It gives its shards away before it ends.
      public static let leaving = State(rawValue: 1)
      /// It lives, and an operator wants it to have no shards.
      public static let drained = State(rawValue: 2)
      public static let ended = State(rawValue: 3)
      /// No renewal of it has arrived for longer than a lease, and the answering node can't know whether it runs.
      public static let silent = State(rawValue: 4)
      /// It lives, and owns no shards until another node has reached it at its address.
      public static let unreached = State(rawValue: 5)
    }

    public var name: String
    /// Where clients and other nodes reach it, as `HOST:PORT`.
    public var address: String
    public var version: String
    public var state: State
    /// How many shards it owns.
    public var shards: UInt32
    /// Milliseconds since its last renewal arrived.
    public var silence: UInt64
    /// Why the node that answers, or any other one, can't reach it, in a sentence without a full stop; empty if it can be reached, or that isn't known.
    public var problem: String

    public init(
      name: String, address: String, version: String, state: State, shards: UInt32, silence: UInt64,
      problem: String = ""
    ) {
      self.name = name
      self.address = address
      self.version = version
      self.state = state
      self.shards = shards
      self.silence = silence
      self.problem = problem
    }

    static let layout = FrameLayout(
      Self.init, Field.string("node's name", limit: Limits.name, \Self.name),
      Field.string("node's address", limit: Limits.name, \Self.address),
      Field.string("node's version", limit: Limits.name, \Self.version),
      Field.number("node's state", \Self.state), Field.integer("node's shards", \Self.shards),
      Field.integer("node's silence", \Self.silence),
      Field.string("node's problem", limit: Limits.message, \Self.problem).added(absent: ""))
  }

  /// A shard.
  ///
  /// ```
  /// u32 number · u8 state · string owner · u64 term · string target · string pin
  /// ```
  public struct Shard: Hashable, Sendable {
    /// The number is the one on the wire; new numbers may follow.
    public struct State: RawRepresentable, Hashable, Sendable {
      public var rawValue: UInt8

      public init(rawValue: UInt8) {
        self.rawValue = rawValue
      }

      public static let held = State(rawValue: 0)
      /// The owner is about to give it away.
      public static let moving = State(rawValue: 1)
      /// No node has it.
      public static let free = State(rawValue: 2)
    }

    public var number: UInt32
    public var state: State
    /// Empty for a free one.
    public var owner: String
    /// The number under which the owner has it, or the last owner had it; 0 before the first.
    public var term: UInt64
    /// The node that it belongs to; empty without nodes.
    public var target: String
    /// The node that an operator wants to own it; empty for none.
    public var pin: String

    public init(number: UInt32, state: State, owner: String, term: UInt64, target: String, pin: String) {
      self.number = number
      self.state = state
      self.owner = owner
      self.term = term
      self.target = target
      self.pin = pin
    }

    static let layout = FrameLayout(
      Self.init, Field.integer("shard's number", \Self.number), Field.number("shard's state", \Self.state),
      Field.string("shard's owner", limit: Limits.name, \Self.owner),
      Field.integer("shard's term", \Self.term),
      Field.string("shard's target", limit: Limits.name, \Self.target),
      Field.string("shard's pin", limit: Limits.name, \Self.pin))
  }
}

extension ClusterInfo {
  /// The part of it that answers a request for a page.
  ///
  /// - Parameters:
  ///   - request: which nodes and shards are wanted, and how many at the most.
  ///   - nodes: the most nodes that fit.
  ///   - shards: the most shards that fit.
  package func page(for request: ClusterShow, nodes: Int, shards: Int) -> ClusterInfo {
    var page = self
    let laterNodes = self.nodes.drop { !request.after.utf8.lexicographicallyPrecedes($0.name.utf8) }
    page.nodes = Array(laterNodes.prefix(min(Int(request.nodes), nodes)))
    page.moreNodes = page.nodes.count < laterNodes.count
    let laterShards = self.shards.drop { $0.number < request.firstShard }
    page.shards = Array(laterShards.prefix(min(Int(request.shards), shards)))
    page.moreShards = page.shards.count < laterShards.count
    return page
  }
}
