import ReactiveCore
import SluiceClient
import SluiceStore
import SluiceWire
import TestSupport

/// Producers that publish exactly once, durable cursors, and groups with explicit acknowledgement on topics of a cluster; and the oracle, which records
/// the acknowledgements.
final class ClusterLoad {
  /// The numbers of acknowledged records that are missing, duplicated or out of their producer's order, and of records that a group never got.
  struct Findings: CustomStringConvertible {
    var records = 0
    var lost = 0
    var doubled = 0
    var disordered = 0
    var withheld = 0
    /// Topics whose records, as read from a node in the end, differ from those that the reader got.
    var different = 0

    /// A sentence for each lost or different record.
    var details: [String] = []

    var isClean: Bool { lost + doubled + disordered + withheld + different == 0 }

    var description: String {
      "\(records) records, \(lost) acknowledged lost, \(doubled) doubled, \(disordered) out of order, \(withheld) withheld from groups, \(different) topics read differently"
    }
  }

  private let stage: ClusterStage
  private let topics: [CrashTopic]
  private(set) var clients: [Client] = []
  /// One watcher at each node.
  private var watchers: [ClusterWatcher] = []

  init(_ stage: ClusterStage, topics count: Int, random: inout SeededRandom) async throws {
    self.stage = stage
    var topics: [CrashTopic] = []
    for (index, name) in try await Self.names(count, on: stage).enumerated() {
      topics.append(CrashTopic(name, .always, index: UInt64(index + 1), random: &random))
    }
    self.topics = topics
    for (index, topic) in topics.enumerated() {
      let client = try await stage.connect(first: index)
      clients.append(client)
      _ = try await client.createTopic(topic.name, settings: topic.settings)
      for producer in topic.producers { producer.start(on: client, from: 0) }
      let other = try await stage.connect(first: index + 1)
      clients.append(other)
      topic.reader.start(on: other)
      topic.group.start(on: other)
    }
    for (index, node) in stage.nodes.enumerated() {
      let client = try await stage.connectAndStay(at: index)
      clients.append(client)
      watchers.append(ClusterWatcher(of: topics.map(\.name), at: node.name, client))
    }
  }

  /// Topic names spread equally over the nodes, so that the loss of any node has an effect.
  private static func names(_ count: Int, on stage: ClusterStage) async throws -> [String] {
    let client = try await stage.connect()
    defer { client.close() }
    let info = try await client.cluster()
    let owners = Dictionary(uniqueKeysWithValues: info.shards.map { (Int($0.number), $0.owner) })
    var names: [String] = []
    var number = 0
    while names.count < count {
      number += 1
      let name = "kills.\(number)"
      let shard = ShardHash.shard(of: name, of: Int(info.shardCount))
      if owners[shard] == stage.nodes[names.count % stage.nodes.count].name { names.append(name) }
      try require(number < 1_000, "each node owns shards: \(owners)")
    }
    return names
  }

  private var producers: [CrashProducer] { topics.flatMap(\.producers) }

  private func requireHealth() throws {
    do {
      for topic in topics { try topic.requireHealth() }
      for watcher in watchers { if let failure = watcher.failure { throw TestFailure(failure) } }
    } catch {
      throw TestFailure("\(error)\(stage.logs)")
    }
  }

  /// Lets producers publish until `count` more records are acknowledged.
  func work(_ count: UInt64) throws {
    let before = producers.reduce(0) { $0 + $1.acknowledged }
    for producer in producers { producer.allow(count) }
    try eventually("\(count) acknowledgements\(stage.logs)", within: 120, every: 0.002) {
      try requireHealth()
      return producers.reduce(0) { $0 + $1.acknowledged } >= before + count
    }
  }

  /// Lets each producer publish `count` records, without waiting.
  func allow(_ count: UInt64) {
    for producer in producers { producer.allow(count) }
  }

  /// The position of each producer; later records are after this mark.
  func mark() -> [UInt64] { producers.map(\.sent) }

  /// The ways in which a record after the mark has arrived for each producer.
  ///
  /// - Parameter away: the index of the removed node, whose subscribers don't count.
  func progress(behind mark: [UInt64], away: Int?) throws -> Set<ClusterPath> {
    try requireHealth()
    var paths: Set<ClusterPath> = []
    if zip(producers, mark).allSatisfy({ $0.acknowledged > $1 }) { paths.insert(.publishing) }
    if zip(arrivalsAtReaders, mark).allSatisfy({ $0.next > $1 }) { paths.insert(.delivering) }
    let isRelayed = watchers(without: away).allSatisfy { watcher in
      zip(producers, mark).allSatisfy { watcher.arrivals(of: $0.id).next > $1 }
    }
    if isRelayed { paths.insert(.relaying) }
    return paths
  }

  /// The topics that a node owns.
  func topics(of node: String) async throws -> Set<String> {
    let info = try await clients[0].cluster()
    let own = Set(info.shards.filter { $0.owner == node }.map { Int($0.number) })
    return Set(
      topics.map(\.name).filter { own.contains(ShardHash.shard(of: $0, of: Int(info.shardCount))) })
  }

  /// Lets each producer publish steadily while `body` runs. Returns the longest time between two records of one producer, for each way.
  ///
  /// - Parameters:
  ///   - moving: the topics that move to another node meanwhile.
  ///   - away: the node whose subscribers don't count.
  func longestGaps(of moving: Set<String>, away: Int?, while body: () async throws -> Void)
    async throws -> ClusterPause
  {
    for producer in producers { producer.restart() }
    for topic in topics { topic.reader.restart() }
    for watcher in watchers { watcher.restart() }
    let isOver = Shared(false)
    let producers = producers
    Task {
      while !isOver.value {
        for producer in producers { producer.allow(1) }
        try? await Task.sleep(for: .milliseconds(20))
      }
    }
    defer { isOver.update { $0 = true } }
    try await body()
    // Pending records still have to arrive.
    let mark = mark()
    try eventually("all topics go on\(stage.logs)", within: 120, every: 0.002) {
      try progress(behind: mark, away: away).count == ClusterPath.allCases.count
    }
    var pause = ClusterPause(.gaps)
    let watchers = watchers(without: away)
    let now = ContinuousClock.now
    for topic in topics {
      for path in ClusterPath.allCases {
        let arrivals =
          switch path {
          case .publishing: topic.producers.map(\.arrivals)
          case .delivering: topic.producers.map { topic.reader.arrivals(of: $0.id) }
          case .relaying: watchers.flatMap { at in topic.producers.map { at.arrivals(of: $0.id) } }
          }
        let gap = arrivals.map { $0.longestGap(at: now) }.max() ?? 0
        var one = ClusterPause(.gaps)
        one.goesOn(path, after: gap)
        if moving.contains(topic.name) { one.moved(path, after: gap) }
        pause.extend(by: one)
      }
    }
    return pause
  }

  private func watchers(without away: Int?) -> [ClusterWatcher] {
    watchers.enumerated().filter { $0.offset != away }.map(\.element)
  }

  /// The arrivals of each producer's records at its topic's reader.
  private var arrivalsAtReaders: [ClusterArrivals] {
    topics.flatMap { topic in topic.producers.map { topic.reader.arrivals(of: $0.id) } }
  }

  /// The producers with a blocked way after their mark, for a failure message.
  func account(behind mark: [UInt64]) -> String {
    let waiting = zip(producers, mark).map { producer, sent in
      let shown = try? stage.sluice("topic", "show", producer.topic, "--json").text
      let relayed = watchers.map { $0.arrivals(of: producer.id).next }
      return
        "producer \(producer.id) of \(producer.topic), marked at \(sent), has \(producer.acknowledged) acknowledged: \(producer.account); relayed \(relayed); \(shown ?? "")"
    }
    return "\(waiting.joined(separator: "\n"))\n\(connections)\(stage.logs)"
  }

  /// The states of the clients, and each node's list of its connections.
  private var connections: String {
    let states = clients.map { client in
      let state = Shared("")
      client.connectionState.sink { value in state.update { $0 = "\(value)" } }.cancel()
      return state.value
    }
    let lists = stage.nodes.indices.map { node in
      (try? stage.sluice("connection", "list", "--json", at: node))?.text ?? "node \(node) doesn't answer"
    }
    return "clients: \(states)\n\(lists.joined(separator: "\n"))"
  }

  /// Waits until everything has arrived, and compares the stored records with the acknowledged ones.
  func finish() async throws -> Findings {
    var findings = Findings()
    for (index, topic) in topics.enumerated() {
      // A reader that gets a record may publish another one.
      var head: UInt64 = 0
      repeat {
        head = try await clients[0].topicInfo(topic.name).summary.nextOffset
        try eventually(
          "the reader of \(topic.name) has \(head) records, and not \(topic.reader.count); everything is acknowledged\(stage.logs)"
        ) {
          try requireHealth()
          return topic.reader.count >= Int(head) && topic.producers.allSatisfy(\.isIdle)
            && topic.reader.marker.isIdle
        }
      } while try await clients[0].topicInfo(topic.name).summary.nextOffset != head
      let records = topic.reader.records
      try eventually("the group of \(topic.name) has all records", within: 120) {
        try requireHealth()
        return topic.group.missed(of: records).isEmpty
      }
      findings.records += records.count
      let stored = try stored(in: topic.name, at: index % stage.nodes.count)
      if stored != records {
        findings.different += 1
        let place =
          zip(stored, records).enumerated().first { $1.0 != $1.1 }?.offset ?? min(stored.count, records.count)
        findings.details.append(
          "\(topic.name) has \(stored.count) records, and its reader got \(records.count); from \(place) on \(stored.dropFirst(place).prefix(3)) are stored, and it got \(records.dropFirst(place).prefix(3))"
        )
      }
      findings.withheld += topic.group.missed(of: records).count
      for producer in topic.producers + [topic.reader.marker] {
        let sequences = records.filter { $0.producer == producer.id }.map(\.sequence)
        let found = Set(sequences)
        findings.doubled += sequences.count - found.count
        findings.disordered += zip(sequences, sequences.dropFirst()).count { $0 > $1 }
        let lost = (0..<producer.acknowledged).filter { !found.contains($0) }
        findings.lost += lost.count
        findings.details += lost.prefix(3).map {
          "\(topic.name): the reader didn't get \(producer.id):\($0) of \(producer.acknowledged) acknowledged"
        }
        // An acknowledgement contains the record's final offset.
        if let receipt = producer.receipt {
          let record = CrashRecord(producer: producer.id, sequence: receipt.sequence)
          let index = Int(receipt.offset)
          if !records.indices.contains(index) || records[index] != record {
            findings.lost += 1
            findings.details.append(
              "\(topic.name)@\(index) was acknowledged as \(record), and the reader has \(records.dropFirst(index).prefix(1)) there"
            )
          }
        }
      }
    }
    return findings
  }

  /// The records that a new client reads from the beginning at a node.
  private func stored(in topic: String, at node: Int) throws -> [CrashRecord] {
    let client = try RawClient(stage.nodes[node].address)
    try client.shakeHands(name: "checker", maximumFrame: 16 << 20)
    let place = try client.subscribe(topic, stream: 1, from: .offset(0), lag: .fail)
    try client.receiveRecords(place.liveOffset, stream: 1)
    return client.subscriptions[1]!.payloads.compactMap { CrashRecord($0) }
  }
}
