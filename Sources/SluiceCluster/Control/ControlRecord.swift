/// The messages of the stream `SLUICE_CTL`: one subject for each fact, of which the last message is valid.
///
/// ```text
/// ctl.cluster        format=1 shards=64
/// ctl.node.NAME      writer=7 count=3 session=17 state=live|leaving|ended address=HOST:PORT version=1.2 [broker=9] [by=NAME]
/// ctl.reach.NAME     broker=9 by=NODE      NODE has reached that broker of the node at its address
/// ctl.shard.NUMBER   writer=7 count=4 state=held|moving|free owner=NAME session=17 term=21 [to=NAME] [from=NAME]
/// ctl.drain.NAME     drain           an operator wants the node to have no shards; empty: withdrawn
/// ctl.pin.NUMBER     NAME            an operator wants the shard there; empty: withdrawn
/// ```
///
/// A session or term of 0 stands for the message's own sequence, so both are numbers that the stream has never used before.
///
/// The next owner takes a shard that is free; or the last owner hands the shard over by writing `held` on behalf of the next one.
enum ControlRecord: Hashable, Sendable {
  case cluster(ClusterRecord)
  case node(String, NodeRecord?)
  case reach(String, ReachRecord?)
  case shard(Int, ShardRecord?)
  case drain(String, Bool)
  case pin(Int, String?)

  static let stream = "SLUICE_CTL"
  static let pattern = "ctl.>"

  /// - Returns: nil for an unknown subject.
  init?(subject: String, payload: String, sequence: UInt64) {
    let words = subject.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard words.count >= 2, words[0] == "ctl" else { return nil }
    let fields = Fields(payload)
    switch (words[1], words.count) {
    case ("cluster", 2):
      guard let record = ClusterRecord(fields) else { return nil }
      self = .cluster(record)
    case ("node", 3): self = .node(words[2], NodeRecord(fields, sequence))
    case ("reach", 3): self = .reach(words[2], ReachRecord(fields))
    case ("drain", 3): self = .drain(words[2], !payload.isEmpty)
    case ("shard", 3):
      guard let number = Int(words[2]) else { return nil }
      self = .shard(number, ShardRecord(fields, sequence))
    case ("pin", 3):
      guard let number = Int(words[2]) else { return nil }
      self = .pin(number, payload.isEmpty ? nil : payload)
    default: return nil
    }
  }

  var subject: String {
    switch self {
    case .cluster: "ctl.cluster"
    case .node(let name, _): "ctl.node.\(name)"
    case .reach(let name, _): "ctl.reach.\(name)"
    case .shard(let number, _): "ctl.shard.\(number)"
    case .drain(let name, _): "ctl.drain.\(name)"
    case .pin(let number, _): "ctl.pin.\(number)"
    }
  }

  /// The record that a subject without a message stands for.
  var absent: ControlRecord {
    switch self {
    case .cluster: self
    case .node(let name, _): .node(name, nil)
    case .reach(let name, _): .reach(name, nil)
    case .shard(let number, _): .shard(number, nil)
    case .drain(let name, _): .drain(name, false)
    case .pin(let number, _): .pin(number, nil)
    }
  }

  var payload: String {
    switch self {
    case .cluster(let record): "format=1 shards=\(record.shards)"
    case .node(_, let record): record?.text ?? ""
    case .reach(_, let record): record?.text ?? ""
    case .shard(_, let record): record?.text ?? ""
    case .drain(_, let isWanted): isWanted ? "drain" : ""
    case .pin(_, let node): node ?? ""
    }
  }
}

/// The settings of the whole cluster; written once.
struct ClusterRecord: Hashable, Sendable {
  var shards: Int

  init(shards: Int) {
    self.shards = shards
  }

  fileprivate init?(_ fields: Fields) {
    guard let shards = fields.number("shards"), (1...65_536).contains(shards) else { return nil }
    self.shards = Int(shards)
  }
}

/// A node's statement that it is alive, which renews the lease of its session; or another node's statement that the session has ended.
struct NodeRecord: Hashable, Sendable {
  enum State: String, Hashable, Sendable {
    case live
    /// It hands over its shards, and gets no others.
    case leaving
    case ended
  }

  /// The process that wrote the record.
  var writer: UInt64
  /// Counts the writer's messages.
  var count: UInt64
  /// The sequence of the session's first message.
  var session: UInt64
  var state: State
  var address: String
  var version: String
  /// The identity of the node's broker, new with each start, by which other nodes check that they have reached this broker. A node of an earlier version
  /// states 0, and doesn't check whether it reaches others.
  var broker: UInt64
  /// The node that has ended the session, if another one did.
  var endedBy: String?

  init(
    writer: UInt64, count: UInt64, session: UInt64, state: State, address: String, version: String,
    broker: UInt64 = 0, endedBy: String? = nil
  ) {
    self.writer = writer
    self.count = count
    self.session = session
    self.state = state
    self.address = address
    self.version = version
    self.broker = broker
    self.endedBy = endedBy
  }

  fileprivate init?(_ fields: Fields, _ sequence: UInt64) {
    guard let writer = fields.number("writer"), let count = fields.number("count"),
      let session = fields.number("session"), let state = fields["state"].flatMap(State.init)
    else { return nil }
    self.init(
      writer: writer, count: count, session: session == 0 ? sequence : session, state: state,
      address: fields["address"] ?? "", version: fields["version"] ?? "",
      broker: fields.number("broker") ?? 0, endedBy: fields["by"])
  }

  var text: String {
    "writer=\(writer) count=\(count) session=\(session) state=\(state.rawValue) address=\(address) version=\(version)"
      + (broker == 0 ? "" : " broker=\(broker)") + (endedBy.map { " by=\($0)" } ?? "")
  }
}

/// A node's statement that it has reached another node's broker at the address that this one advertises.
struct ReachRecord: Hashable, Sendable {
  /// The broker's identity: a restarted node must be reached again.
  var broker: UInt64
  /// The node that has reached it.
  var witness: String

  init(broker: UInt64, by witness: String) {
    self.broker = broker
    self.witness = witness
  }

  fileprivate init?(_ fields: Fields) {
    guard let broker = fields.number("broker"), let witness = fields["by"] else { return nil }
    self.init(broker: broker, by: witness)
  }

  var text: String { "broker=\(broker) by=\(witness)" }
}

/// The node and session that own a shard.
struct ShardRecord: Hashable, Sendable {
  enum State: String, Hashable, Sendable {
    case held
    /// The owner is about to hand it over.
    case moving
    case free
  }

  /// The owner's process, even if the last owner has written the record.
  var writer: UInt64
  var count: UInt64
  var state: State
  /// The owner, or the last owner of a free shard.
  var owner: String
  var session: UInt64
  /// The sequence of the message with which the owner took the shard.
  var term: UInt64
  var successor: String?
  /// The node that has handed the shard over to the owner; nil if the owner took it.
  var giver: String?

  init(
    writer: UInt64, count: UInt64, state: State, owner: String, session: UInt64, term: UInt64,
    successor: String? = nil, giver: String? = nil
  ) {
    self.writer = writer
    self.count = count
    self.state = state
    self.owner = owner
    self.session = session
    self.term = term
    self.successor = successor
    self.giver = giver
  }

  fileprivate init?(_ fields: Fields, _ sequence: UInt64) {
    guard let writer = fields.number("writer"), let count = fields.number("count"),
      let state = fields["state"].flatMap(State.init), let owner = fields["owner"],
      let session = fields.number("session"), let term = fields.number("term")
    else { return nil }
    self.init(
      writer: writer, count: count, state: state, owner: owner, session: session,
      term: term == 0 ? sequence : term, successor: fields["to"], giver: fields["from"])
  }

  var text: String {
    "writer=\(writer) count=\(count) state=\(state.rawValue) owner=\(owner) session=\(session) term=\(term)"
      + (successor.map { " to=\($0)" } ?? "") + (giver.map { " from=\($0)" } ?? "")
  }
}

/// `name=value` with blanks between.
private struct Fields {
  private var values: [Substring: Substring] = [:]

  init(_ text: String) {
    for word in text.split(separator: " ") {
      guard let mark = word.firstIndex(of: "=") else { continue }
      values[word[..<mark]] = word[word.index(after: mark)...]
    }
  }

  subscript(name: String) -> String? { values[name[...]].map(String.init) }

  func number(_ name: String) -> UInt64? { values[name[...]].flatMap { UInt64($0) } }
}
