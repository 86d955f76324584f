import Glibc
import SluiceStore
import SluiceWire
import TestSupport

/// An owner of a topic, with its own clients, that is paused for longer than its lease and wakes up when another node owns the topic.
struct StaleOwner {
  /// The result of a try.
  struct Findings: CustomStringConvertible {
    /// Acknowledgements and records that clients got through the stale node after its successor's term started.
    var acknowledgements = 0
    var deliveries = 0
    /// Records published to the stale node, and those of them that are stored: under its own term or, forwarded, under its successor's.
    var published = 0
    var stored = 0
    /// Violations of the guarantees, a sentence each.
    var violations: [String] = []

    var description: String {
      "\(acknowledgements) acknowledgements and \(deliveries) records through the stale node, \(stored) of its clients' \(published) records stored"
    }
  }

  let stage: ClusterStage
  let topic: String
  /// The number of the try; makes the records' marks unique.
  let number: Int
  /// Whether subscribers get records of the topic before they are stored.
  let deliversUnsaved: Bool

  /// - Parameter random: chooses the moment of the pause.
  func wake(_ random: inout SeededRandom) throws -> Findings {
    var attempt = 0
    // Shards may be moving back to a node that has just returned.
    let (before, stale, client) = try retrying {
      attempt += 1
      let before = try owner(at: 0) { $0.target == $0.owner }
      let stale = stage.nodes.firstIndex { $0.name == before.owner }!
      let client = try StaleOwnerClient(
        topic, at: stage.nodes[stale].address, prefix: "\(number).\(attempt)")
      try require(try info(at: 0).shards.first { $0.number == shard } == before, "the shard has moved")
      return (before, stale, client)
    }
    let other = (stale + 1 + Int(random.next() % 2)) % 3

    // Some records are in transit when the owner stops, and some arrive while it can't read them.
    try client.publish(8)
    usleep(UInt32(random.next() % 3_000))
    stage.nodes[stale].signal(SIGSTOP)
    let (successor, published) = try {
      // Wake it up in any case.
      defer { stage.nodes[stale].signal(SIGCONT) }
      try client.publish(8)
      let successor = try owner(at: other) { $0.owner != before.owner && $0.term > before.term }
      let published = try publishElsewhere(at: other)
      // Read the frames that the owner sent before it stopped.
      try client.receiveAll()
      client.isAwake = true
      return (successor, published)
    }()
    // Wait until it is an ordinary node again and has answered its clients.
    try eventually("\(before.owner) is back\(stage.logs)") {
      try client.receive(0.02)
      return try isBack(stale, from: other)
    }
    let deadline = Deadline(in: 2)
    while !client.isAnswered, !deadline.isOver { try client.receive(0.02) }
    try client.receiveAll()
    client.client.close()
    return try compare(client, published, before: before, successor: successor, at: other)
  }

  /// Compares the frames that the clients received with the stored records, as the successor reports them.
  private func compare(
    _ client: StaleOwnerClient, _ published: (marks: [String], last: UInt64), before: ClusterInfo.Shard,
    successor: ClusterInfo.Shard, at other: Int
  ) throws -> Findings {
    var findings = Findings()
    let stored = try records(from: client.start, at: other)
    let offsets = Dictionary(grouping: stored.indices, by: { stored[$0] })
    findings.violations += offsets.filter { $0.value.count > 1 }.map {
      "\($0.key) is stored \($0.value.count) times"
    }
    func check(_ mark: String?, at offset: UInt64, _ what: String) {
      let index = Int(offset) - Int(client.start)
      let found = stored.indices.contains(index) ? stored[index] : "nothing"
      if found != mark {
        findings.violations.append(
          "\(topic)@\(offset) is \(found) under term \(successor.term), and \(mark ?? "nothing") was \(what)")
      }
    }
    for (index, mark) in published.marks.enumerated() {
      let offset = published.last - UInt64(published.marks.count - 1 - index)
      check(mark, at: offset, "acknowledged by the successor")
    }
    for acknowledgement in client.acknowledgements {
      // Records that were only received may be lost with their owner; if topics deliver unsaved records, so may delivered ones.
      guard
        acknowledgement.isAwake || acknowledgement.stream == StaleOwnerClient.durable || !deliversUnsaved
      else { continue }
      let marks = client.sent[acknowledgement.stream]!.prefix(Int(acknowledgement.ack.through))
      check(marks.last, at: acknowledgement.ack.lastOffset, "acknowledged by \(before.owner)")
      for mark in marks where offsets[mark] == nil && (acknowledgement.isAwake || !deliversUnsaved) {
        findings.violations.append("\(mark) isn't stored, which \(before.owner) has acknowledged")
      }
    }
    for delivery in client.deliveries where delivery.isAwake || !deliversUnsaved {
      check(delivery.mark, at: delivery.offset, "delivered by \(before.owner)")
    }
    findings.acknowledgements = client.acknowledgements.count { $0.isAwake }
    findings.deliveries = client.deliveries.count { $0.isAwake }
    findings.published = client.sent.values.reduce(0) { $0 + $1.count }
    findings.stored = client.sent.values.joined().count { offsets[$0] != nil }
    return findings
  }

  // MARK: The other nodes

  var shard: Int { ShardHash.shard(of: topic, of: 64) }

  private func info(at node: Int) throws -> ClusterInfo {
    let client = try RawClient(stage.nodes[node].address)
    defer { client.close() }
    try client.shakeHands(name: "observer")
    try client.send(ClusterShow(nodes: 10, shards: 64), stream: 1001)
    return try client.answer(ClusterInfo.self, stream: 1001)
  }

  /// Waits until a node reports such an owner of the topic's shard.
  private func owner(
    at node: Int, _ isWanted: (ClusterInfo.Shard) -> Bool
  ) throws -> ClusterInfo.Shard {
    var found: ClusterInfo.Shard?
    try eventually("an owner of \(topic)\(stage.logs)") {
      found = try info(at: node).shards.first { $0.number == shard && $0.state == .held && isWanted($0) }
      return found != nil
    }
    return found!
  }

  /// Whether a node is part of the cluster, as reported by itself and by another node.
  private func isBack(_ node: Int, from other: Int) throws -> Bool {
    guard try info(at: node).unreadiness.isEmpty else { return false }
    return try info(at: other).nodes.contains {
      $0.name == stage.nodes[node].name && $0.state == .live && $0.silence < 1_000
    }
  }

  /// Publishes through a node other than the stale one, and waits for the acknowledgement. Returns the records' marks, and the offset of the last
  /// one.
  private func publishElsewhere(at node: Int) throws -> (marks: [String], last: UInt64) {
    var attempt = 0
    return try retrying {
      attempt += 1
      let marks = (0..<5).map { "<\(number).other.\(attempt).\($0)>" }
      let client = try RawClient(stage.nodes[node].address)
      defer { client.close() }
      try client.shakeHands(name: "elsewhere")
      try client.openPublication(topic, stream: 2, acknowledgement: .durable)
      try client.publish(marks, stream: 2)
      try client.receiveAcknowledgements(stream: 2)
      return (marks, client.publications[2]!.lastOffset!)
    }
  }

  /// The marks of all stored records.
  func marks() throws -> [String] {
    try records(from: 0, at: 0).map { String($0.dropFirst().dropLast()) }
  }

  /// All stored records from an offset on.
  private func records(from offset: UInt64, at node: Int) throws -> [String] {
    try retrying {
      let client = try RawClient(stage.nodes[node].address)
      defer { client.close() }
      try client.shakeHands(name: "reader")
      let place = try client.subscribe(topic, stream: 1, from: .offset(offset), lag: .fail)
      if place.liveOffset > offset { try client.receiveRecords(place.liveOffset - offset, stream: 1) }
      return client.subscriptions[1]!.texts
    }
  }

  /// Retries a failing operation, as clients must while a shard moves.
  private func retrying<Value>(_ body: () throws -> Value) throws -> Value {
    let deadline = Deadline(in: 60)
    while true {
      do {
        return try body()
      } catch {
        if deadline.isOver { throw error }
        pause(0.05)
      }
    }
  }
}
