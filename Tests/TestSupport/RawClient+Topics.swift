import SluiceWire

/// Common operations of tests: subscriptions, publications and requests.
extension RawClient {
  // MARK: Subscriptions

  /// Sends SUBSCRIBE, without waiting for the reply.
  public func sendSubscribe(
    _ topic: String, stream: UInt32, from start: Subscribe.Start = .replay,
    lag: Subscribe.LagPolicy? = .skip, epoch: UInt64 = 0, granted: UInt64 = Credit.unlimited,
    cursor: String = "", where conditions: [RecordFilter.Condition] = []
  ) throws {
    subscriptions[stream] = SubscriptionLedger(stream: stream, granted: granted)
    try send(
      Subscribe(
        topic: topic, start: start, lag: lag, epoch: epoch, grantedThrough: granted, cursor: cursor,
        filter: RecordFilter(conditions)), stream: stream)
  }

  /// Sends SUBSCRIBE and receives SUBSCRIBED.
  @discardableResult
  public func subscribe(
    _ topic: String, stream: UInt32, from start: Subscribe.Start = .replay,
    lag: Subscribe.LagPolicy? = .skip, epoch: UInt64 = 0, granted: UInt64 = Credit.unlimited,
    cursor: String = "", where conditions: [RecordFilter.Condition] = []
  ) throws -> Subscribed {
    try sendSubscribe(
      topic, stream: stream, from: start, lag: lag, epoch: epoch, granted: granted, cursor: cursor,
      where: conditions)
    try receive(until: "SUBSCRIBED on stream \(stream)") {
      subscriptions[stream]!.epoch != nil || subscriptions[stream]!.isOver
    }
    guard case .subscribed(let next, let live)? = subscriptions[stream]!.events.first,
      let epoch = subscriptions[stream]!.epoch
    else { throw TestFailure("SUBSCRIBE \(topic) was answered by \(subscriptions[stream]!.events)") }
    return Subscribed(
      epoch: epoch, nextOffset: next, liveOffset: live, gaps: subscriptions[stream]!.gaps)
  }

  /// Sends DEMAND with a total, after recording it.
  public func demand(_ total: UInt64, stream: UInt32) throws {
    subscriptions[stream]!.grant(through: total)
    try send(Demand(grantedThrough: total), stream: stream)
  }

  /// Receives until the subscription has `count` records in all.
  public func receiveRecords(
    _ count: UInt64, stream: UInt32, within seconds: Double = Deadline.patience
  ) throws {
    try receive(
      until: "\(count) records on stream \(stream); there are \(events(stream))", within: seconds
    ) {
      let ledger = subscriptions[stream]!
      try require(
        !ledger.isOver || ledger.delivered >= count,
        "stream \(stream) ended after \(ledger.delivered) records: \(ledger.events.last!)")
      return ledger.delivered >= count
    }
  }

  /// Receives until the stream has ended.
  public func receiveEnd(stream: UInt32, within seconds: Double = Deadline.patience) throws {
    try receive(until: "the end of stream \(stream); there are \(events(stream))", within: seconds) {
      subscriptions[stream]!.isOver
    }
  }

  public func events(_ stream: UInt32) -> [SubscriptionLedger.Event] {
    subscriptions[stream]?.events ?? []
  }

  /// Sends CANCEL, and receives frames until CANCELLED.
  public func cancel(stream: UInt32) throws {
    try send(Cancel(), stream: stream)
    _ = try receive("CANCELLED on stream \(stream)") { $0.stream == stream && $0.type == .cancelled }
  }

  // MARK: Publications

  /// Sends PUBLISH_OPEN and receives PUBLISH_OPENED.
  public func openPublication(
    _ topic: String, stream: UInt32, acknowledgement: PublishOpen.Acknowledgement = .received,
    role: PublishOpen.Role = .producer, producer: UInt64 = 0, from first: UInt64 = 0
  ) throws {
    publications[stream] = PublicationLedger(topic: topic)
    try send(
      PublishOpen(
        topic: topic, acknowledgement: acknowledgement, role: role, producer: producer,
        firstSequence: first), stream: stream)
    try receive(until: "PUBLISH_OPENED on stream \(stream)") {
      if let end = publications[stream]!.end { throw TestFailure("\(topic) can't be published to: \(end)") }
      return publications[stream]!.epoch != nil
    }
  }

  /// Publishes records as the broker grants them, in one batch if possible.
  public func publish(_ batch: BatchBuilder, stream: UInt32) throws {
    let starts = Self.starts(of: batch.bytes)
    var rest = starts[...]
    while let first = rest.first {
      var count = 0
      try receive(until: "a grant on stream \(stream)") {
        if let end = publications[stream]!.end { throw TestFailure("the publication has ended: \(end)") }
        count = publications[stream]!.allowed(of: rest)
        return count > 0
      }
      rest = rest.dropFirst(count)
      let bytes = Array(batch.bytes[first..<(rest.first ?? batch.bytes.count)])
      var front = [UInt8](repeating: 0, count: FrameHeader.size + PublishHeader.size)
      front.withUnsafeMutableBytes {
        PublishHeader(firstSequence: publications[stream]!.sent, count: UInt32(count))
          .write(at: $0.baseAddress!, stream: stream, batchLength: bytes.count)
      }
      try send(raw: front + bytes)
      publications[stream]!.sent += UInt64(count)
      publications[stream]!.bytesSent += UInt64(bytes.count)
    }
  }

  /// The start of each record in a batch.
  private static func starts(of batch: [UInt8]) -> [Int] {
    batch.withUnsafeBytes { batch in
      var starts: [Int] = []
      var position = 0
      while position < batch.count {
        starts.append(position)
        position += RecordLayout.itemSize(RecordLayout.word(at: batch.baseAddress! + position))
      }
      return starts
    }
  }

  /// Publishes payloads as one batch.
  public func publish(_ payloads: [[UInt8]], stream: UInt32) throws {
    var batch = BatchBuilder()
    for payload in payloads { payload.withUnsafeBytes { batch.append($0) } }
    try publish(batch, stream: stream)
  }

  /// Publishes records with keys as one batch.
  public func publish(_ records: [(key: String, payload: String)], stream: UInt32) throws {
    var batch = BatchBuilder()
    for (key, payload) in records {
      try [UInt8](key.utf8).withUnsafeBytes { key in
        try [UInt8](payload.utf8).withUnsafeBytes { try batch.append(key: key, headers: [], payload: $0) }
      }
    }
    try publish(batch, stream: stream)
  }

  public func publish(_ payloads: [String], stream: UInt32) throws {
    try publish(payloads.map { [UInt8]($0.utf8) }, stream: stream)
  }

  /// Waits until all published records are acknowledged.
  public func receiveAcknowledgements(stream: UInt32, within seconds: Double = Deadline.patience) throws {
    try receive(until: "the last ACK on stream \(stream)", within: seconds) {
      let ledger = publications[stream]!
      if let end = ledger.end, ledger.acknowledged < ledger.sent {
        throw TestFailure("the publication has ended with \(ledger.acknowledged) acknowledged: \(end)")
      }
      return ledger.acknowledged == ledger.sent
    }
  }

  /// Opens a publication, publishes, waits for the acknowledgement, and closes it again.
  public func publishAll(_ payloads: [String], to topic: String, stream: UInt32 = 1000) throws {
    try openPublication(topic, stream: stream)
    if !payloads.isEmpty { try publish(payloads, stream: stream) }
    try receiveAcknowledgements(stream: stream)
    try cancel(stream: stream)
  }

  /// Sends COMPLETE on a publication, and receives frames until the reply.
  public func complete(_ ending: Complete.Ending = .finished, stream: UInt32) throws {
    try send(Complete(ending), stream: stream)
    try receive(until: "the answer to COMPLETE") { publications[stream]!.end != nil }
    try require(publications[stream]!.end == .cancelled, "COMPLETE led to \(publications[stream]!.end!)")
  }

  /// Completes a topic with a new publication.
  public func end(_ topic: String, _ ending: Complete.Ending = .finished, stream: UInt32 = 1000) throws {
    try openPublication(topic, stream: stream)
    try complete(ending, stream: stream)
  }

  public static func publishFrame(
    _ batch: BatchBuilder, from sequence: UInt64, stream: UInt32
  ) -> [UInt8] {
    var front = [UInt8](repeating: 0, count: FrameHeader.size + PublishHeader.size)
    front.withUnsafeMutableBytes {
      PublishHeader(firstSequence: sequence, count: batch.count)
        .write(at: $0.baseAddress!, stream: stream, batchLength: batch.bytes.count)
    }
    return front + batch.bytes
  }

  // MARK: Requests

  /// Sends TOPIC_SHOW. Returns the reply.
  public func show(_ topic: String, stream: UInt32 = 1001) throws -> TopicInfo {
    try send(TopicShow(topic: topic), stream: stream)
    return try answer(TopicInfo.self, stream: stream)
  }

  @discardableResult
  public func create(
    _ topic: String, _ settings: TopicSettings = TopicSettings(), stream: UInt32 = 1001
  ) throws -> TopicInfo {
    try send(TopicCreate(topic: topic, settings: settings), stream: stream)
    return try answer(TopicInfo.self, stream: stream)
  }

  public func connect(_ topic: String, stream: UInt32 = 1001) throws {
    try send(TopicConnect(topic: topic), stream: stream)
    _ = try answer(Done.self, stream: stream)
  }

  public func disconnect(_ topic: String, stream: UInt32 = 1001) throws {
    try send(TopicDisconnect(topic: topic), stream: stream)
    _ = try answer(Done.self, stream: stream)
  }

  public func list(after: String = "", limit: UInt32, stream: UInt32 = 1001) throws -> Topics {
    try send(TopicList(after: after, limit: limit), stream: stream)
    return try answer(Topics.self, stream: stream)
  }

  public func listCursors(
    of topic: String, after: String = "", limit: UInt32 = 1000, stream: UInt32 = 1001
  ) throws -> Cursors {
    try send(CursorList(topic: topic, after: after, limit: limit), stream: stream)
    return try answer(Cursors.self, stream: stream)
  }

  public func moveCursor(
    _ name: String, of topic: String, to start: Subscribe.Start, stream: UInt32 = 1001
  ) throws {
    try send(CursorMove(topic: topic, name: name, to: start), stream: stream)
    _ = try answer(Done.self, stream: stream)
  }

  public func deleteCursor(_ name: String, of topic: String, stream: UInt32 = 1001) throws {
    try send(CursorDelete(topic: topic, name: name), stream: stream)
    _ = try answer(Done.self, stream: stream)
  }

  public func delete(_ topic: String, stream: UInt32 = 1001) throws {
    try send(TopicDelete(topic: topic), stream: stream)
    _ = try answer(Done.self, stream: stream)
  }

  /// The next frame on this stream; frames of other streams are recorded in their ledgers.
  public func answer<F: Frame>(_ type: F.Type, stream: UInt32) throws -> F {
    try receive("\(F.type) on stream \(stream)") { $0.stream == stream }.decode(F.self)
  }
}
