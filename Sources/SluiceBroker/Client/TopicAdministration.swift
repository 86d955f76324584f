import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire

/// Administrative requests on topics: checks the client's permission, changes the topic, and writes the audit line, whatever the result.
///
/// The change of a durable topic may not be on disk yet when a function returns; `Topic.whenCommitted` waits for that. Belongs to the loop of `topics`.
struct TopicAdministration {
  let client: ConnectedClient
  let topics: TopicLoop

  private var core: BrokerCore { client.core }

  init(by client: ConnectedClient, on topics: TopicLoop) {
    self.client = client
    self.topics = topics
  }

  func create(_ frame: TopicCreate) throws(WireError) -> Topic {
    try run(.createTopic, of: frame.topic) { () throws(WireError) in
      try client.require(.topicCreate, on: frame.topic)
      if let there = core.registry.find(frame.topic) { try client.requireInbox(there, for: .topicCreate) }
      let topic = try core.registry.create(frame.topic, frame.settings, by: client.quota)
      client.workBudget.spend(client.quota.takeTold(), of: .watchers)
      try client.requireInbox(topic, for: .topicCreate)
      topic.failWhenProducersStayLost(on: topics)
      return topic
    }
  }

  func set(_ frame: TopicSet) throws(WireError) -> Topic {
    try run(.setTopic, of: frame.topic) { () throws(WireError) in
      let topic = try client.topic(frame.topic, for: .topicSet)
      try core.registry.change(
        topic, frame.settings, now: topics.loop.now, wallClock: topics.loop.wallClock)
      topic.trim(now: topics.loop.wallClock)
      topic.failWhenProducersStayLost(on: topics)
      core.metrics.add(.settingChanges)
      return topic
    }
  }

  func trim(_ frame: TopicTrim) throws(WireError) -> Topic {
    try run(.trimTopic, of: frame.topic) { () throws(WireError) in
      let topic = try client.topic(frame.topic, for: .topicTrim)
      let limit: TrimLimit =
        switch frame.limit {
        case .from(let offset): .from(offset)
        case .newest(let count): .newest(count)
        }
      let count = try topic.trim(to: limit)
      core.metrics.add(.trims)
      core.metrics.add(.recordsTrimmed, Int(clamping: count))
      return topic
    }
  }

  func delete(_ name: String) throws(WireError) -> Topic {
    try run(.deleteTopic, of: name) { () throws(WireError) in
      try client.require(.topicDelete, on: name)
      return try core.registry.delete(name)
    }
  }

  // MARK: Cursors and groups

  /// Returns the time to which a cursor is moved, if only the store can find its offset; otherwise nil.
  func unknownStart(of frame: CursorMove) throws(WireError) -> (time: Int64, storage: StoreTopicState)? {
    guard case .time(let time) = frame.start else { return nil }
    let topic: Topic
    do {
      topic = try client.topic(frame.topic, for: .cursorMove)
    } catch {
      report(.moveCursor(frame.name), of: frame.topic, refusal: error)
      throw error
    }
    guard let storage = topic.storage, topic.epoch.needsStore(for: .time(time)) else { return nil }
    return (time, storage)
  }

  func move(_ frame: CursorMove) throws(WireError) -> Topic {
    try run(.moveCursor(frame.name), of: frame.topic) { () throws(WireError) in
      let topic = try client.topic(frame.topic, for: .cursorMove)
      if !topic.moveGroup(frame.name, to: frame.start, on: topics) {
        try topic.moveCursor(
          frame.name, to: StartPosition(frame.start), by: client.keeper, now: topics.loop.now,
          wallClock: topics.loop.wallClock)
      }
      return topic
    }
  }

  func delete(_ frame: CursorDelete) throws(WireError) -> Topic {
    try run(.deleteCursor(frame.name), of: frame.topic) { () throws(WireError) in
      let topic = try client.topic(frame.topic, for: .cursorDelete)
      if !topic.deleteGroup(frame.name, on: topics) {
        try topic.deleteCursor(frame.name, now: topics.loop.now)
      }
      return topic
    }
  }

  // MARK: Records

  /// Publishes one record, as a producer that attaches and leaves at once.
  ///
  /// - Throws: ``ErrorCode/limitReached`` when subscribers, the disk or memory leave producers no demand, since this request doesn't wait.
  func publish(to name: String, _ record: () throws(WireError) -> BatchBuilder) throws(WireError) -> Topic {
    try run(.publishRecord, of: name) { () throws(WireError) in
      try client.require(.publishOpen, on: name)
      let topic = try core.registry.known(name)
      try client.requireInbox(topic, for: .publishOpen)
      if let fault = topic.storageRefusal { throw WireError(fault) }
      let batch = try record()
      try unsafe batch.bytes.withUnsafeBytes { bytes in
        Result { () throws(WireError) in
          try unsafe RecordLayout.validate(bytes, count: 1, maximumRecord: core.rules.records.present)
          try unsafe topic.publishOne(bytes, on: topics)
        }
      }.get()
      return topic
    }
  }

  /// Reports a request that is done or was rejected. A missing permission isn't reported here, since the permission check reports it.
  func report(_ action: BrokerEvent.Administration, of topic: String, refusal: WireError? = nil) {
    guard refusal?.code != .permissionDenied else { return }
    client.report { .administered($0, action, topic: topic, refusal: refusal) }
  }

  private func run(
    _ action: BrokerEvent.Administration, of topic: String, _ body: () throws(WireError) -> Topic
  ) throws(WireError) -> Topic {
    do {
      let changed = try body()
      report(action, of: topic)
      return changed
    } catch {
      report(action, of: topic, refusal: error)
      throw error
    }
  }
}

extension WireError {
  /// The error for a client whose connection an operator closes.
  static var connectionClosedByOperator: WireError {
    WireError(.closedByOperator, "an operator has closed the connection; connect again to continue")
  }

  static func unknownConnection(_ connection: UInt64) -> WireError {
    WireError(.unknownConnection, "there is no connection \(connection)")
  }
}
