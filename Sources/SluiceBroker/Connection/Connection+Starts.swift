import SluiceIO
import SluiceLog
import SluiceWire

// Subscriptions to durable topics that begin at a time: where that is, the store knows, and is asked first.
extension Connection {
  func subscribeFound(_ stream: UInt32, _ frame: Subscribe) throws(WireError) {
    let topic = try registry.use(frame.topic)
    if findStart(
      frame.start, of: topic, stream,
      { connection, start in
        var frame = frame
        frame.start = start
        // It may have asked for more meanwhile.
        frame.grantedThrough = connection.session.granted(stream) ?? frame.grantedThrough
        connection.attempt(stream) { () throws(WireError) in try connection.subscribe(stream, frame) }
      })
    {
      return
    }
    try subscribe(stream, frame)
  }

  func joinFound(_ stream: UInt32, _ frame: JoinGroup) throws(WireError) {
    let topic = try registry.use(frame.topic)
    if findStart(
      frame.start, of: topic, stream,
      { connection, start in
        var frame = frame
        frame.start = start
        connection.attempt(stream) { () throws(WireError) in try connection.joinStored(stream, frame, topic) }
      })
    {
      return
    }
    try joinStored(stream, frame, topic)
  }

  /// Joins a group that is on disk, if its topic is durable: one that is made for this is brought there first, or a crash would take it from under
  /// its members.
  private func joinStored(_ stream: UInt32, _ frame: JoinGroup, _ topic: Topic) throws(WireError) {
    guard let storage = topic.storage, !topic.hasGroup(frame.group) else { return try join(stream, frame) }
    try frame.validate()
    if let fault = storage.service.refusal { throw WireError(fault.code, fault.message) }
    _ = try topic.group(
      for: frame, buffered: topic.bufferedFrom, limits: context.core.configuration.limits, on: context)
    lastNumber += 1
    let number = lastNumber
    setHandle(stream, .starting(number))
    let loop = context.loop
    topic.whenCommitted { [weak self] in
      loop.execute { [weak self] in
        guard let self, case .starting(number) = handle(stream) else { return }
        setHandle(stream, .none)
        var frame = frame
        // It may have asked for more meanwhile.
        frame.grantedThrough = session.granted(stream) ?? frame.grantedThrough
        attempt(stream) { () throws(WireError) in try join(stream, frame) }
      }
    }
  }

  /// Asks the store where somebody begins, if nobody else knows, and goes on with that; unless the stream is over by then.
  ///
  /// - Returns: whether it was asked.
  func findStart(
    _ start: Subscribe.Start, of topic: Topic, _ stream: UInt32,
    _ body: @escaping @Sendable (Connection, Subscribe.Start) -> Void
  ) -> Bool {
    guard case .time(let time) = start, let storage = topic.storage,
      topic.life.needsStore(for: .time(time))
    else { return false }
    lastNumber += 1
    let number = lastNumber
    setHandle(stream, .starting(number))
    let loop = context.loop
    storage.service.find(time, in: storage) { [weak self] offset in
      loop.execute { [weak self] in
        guard let self, case .starting(number) = handle(stream) else { return }
        setHandle(stream, .none)
        body(self, .offset(offset))
      }
    }
    return true
  }
}
