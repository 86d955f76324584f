import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceWire

// Subscriptions to durable topics that begin at a time: where that is, the store knows, and is asked first.
extension Connection {
  func subscribeFound(_ stream: UInt32, _ frame: Subscribe) throws(WireError) {
    try found(
      frame.start,
      of: try topic(frame.topic, for: .subscribe, ifMissing: frame.ifMissing, stating: frame.settings), stream
    ) {
      connection, start, granted throws(WireError) in
      var frame = frame
      if let start { frame.start = start }
      if let granted { frame.grantedThrough = granted }
      try connection.subscribe(stream, frame)
    }
  }

  func joinFound(_ stream: UInt32, _ frame: JoinGroup) throws(WireError) {
    let topic = try topic(for: frame)
    try found(frame.start, of: topic, stream) { connection, start, granted throws(WireError) in
      var frame = frame
      if let start { frame.start = start }
      if let granted { frame.grantedThrough = granted }
      try connection.joinStored(stream, frame, topic)
    }
  }

  /// Opens a subscription where it is to start: at once, or when the store has said where that is, with what was granted by then.
  private func found(
    _ start: Subscribe.Start, of topic: Topic, _ stream: UInt32,
    _ open: @escaping @Sendable (Connection, Subscribe.Start?, _ granted: UInt64?) throws(WireError) -> Void
  ) throws(WireError) {
    let isAsked = findStart(start, of: topic, stream) { connection, start in
      let granted = connection.session.granted(stream)
      connection.attempt(stream) { () throws(WireError) in try open(connection, start, granted) }
    }
    if !isAsked { try open(self, nil, nil) }
  }

  /// Joins a group that is on disk, if its topic is durable: one that is made for this is brought there first, or a crash would take it from under
  /// its members.
  private func joinStored(_ stream: UInt32, _ frame: JoinGroup, _ topic: Topic) throws(WireError) {
    guard topic.storage != nil, !topic.hasGroup(frame.group) else { return try join(stream, frame) }
    try frame.validate()
    if let fault = topic.storageRefusal { throw WireError(fault.code, fault.message) }
    _ = try topic.group(
      for: frame, buffered: topic.bufferedFrom, limits: context.core.configuration.limits, on: context)
    lastNumber += 1
    let number = lastNumber
    setHandle(stream, .starting(number))
    topic.whenCommitted(of: frame.group) { [reference] fault in
      reference.execute { connection in
        guard case .starting(number) = connection.handle(stream) else { return }
        if let fault { return connection.refuse(stream, fault) }
        connection.setHandle(stream, .none)
        var frame = frame
        // The client may have asked for more meanwhile.
        frame.grantedThrough = connection.session.granted(stream) ?? frame.grantedThrough
        connection.attempt(stream) { () throws(WireError) in try connection.join(stream, frame) }
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
      topic.epoch.needsStore(for: .time(time))
    else { return false }
    lastNumber += 1
    let number = lastNumber
    setHandle(stream, .starting(number))
    storage.service.find(time, in: storage) { [reference] offset in
      reference.execute { connection in
        guard case .starting(number) = connection.handle(stream) else { return }
        connection.setHandle(stream, .none)
        body(connection, .offset(offset))
      }
    }
    return true
  }
}
