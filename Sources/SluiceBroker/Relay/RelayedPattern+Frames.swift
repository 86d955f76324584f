import SluiceIO
import SluiceTopics
import SluiceWire

/// Handles the frames that other nodes send on the streams of a subscription to a pattern.
extension RelayedPattern {
  func opened(_ part: PatternPart, _ frame: Subscribed) {
    loans.begin(part.index)
    let shards = ShardSet(count: frame.nextOffset, hash: frame.liveOffset)
    if !hasBegun, shards != agreement.others[part.node] ?? ShardSet() { return beginAgain() }
    settle()
  }

  /// Called when a stream has ended.
  func ended(_ part: PatternPart, _ fault: Fault) {
    topics.end(part.source)
    loans.end(part.index)
    if isOver { return }
    guard fault.code == .topicMoved else {
      if !hasBegun { return streams.refuse(stream, fault) }
      queue.append(.end(fault), part: part.index)
      return wake()
    }
    guard hasBegun else { return beginAgain() }
    if relay.owners.contains(part.node) { part.waitToTryAgain() } else { remove(part) }
    settle()
  }

  /// Opens the stream of a part again, at the subscriber's positions.
  func reopen(_ part: PatternPart) {
    closeStream(of: part)
    guard hasBegun else { return beginAgain() }
    part.waitToTryAgain()
  }

  /// - Returns: false for a frame that isn't allowed.
  func receive(
    _ type: FrameType, _ body: UnsafeRawBufferPointer, from part: PatternPart
  ) throws(WireError) -> Bool {
    if isOver { return true }
    let source = part.source
    var about: UInt32?
    var records: UInt64 = 0
    switch type {
    case .deliver:
      let (header, batch) = unsafe try DeliverHeader.decode(body)
      about = try topics.deliver(header, from: source)
      records = UInt64(header.count)
      try loans.received(records, bytes: batch.count, from: part.index, isWanted: about != nil)
    case .matched: try unsafe matched(Matched(body: body), part)
    case .unmatched:
      if let number = topics.unmatched(unsafe try Unmatched(body: body).number, from: source) {
        queue.append(Unmatched(number: number), part: part.index, stream: stream)
      }
    case .selectTopic: select(unsafe try SelectTopic(body: body).number, part)
    case .live:
      let live = try unsafe Live(body: body)
      about = topics.live(live, from: source)
      if about == nil, !topics.isSelected(source) { becameLive(part) }
    case .lag: about = try topics.lagged(unsafe Lag(body: body), from: source)
    case .complete:
      _ = try unsafe Complete(body: body)
      about = topics.completed(from: source)
    case .offer:
      try loans.offered(unsafe Offer(body: body), by: part.index)
      settle()
    default: return false
    }
    if let about {
      unsafe queue.append(type, body, about: about, records: records, part: part.index, stream: stream)
      if records > 0 { track(body.count, of: part) }
    }
    streams.attempt(stream) { () throws(WireError) in try countTopics() }
    wake()
    return true
  }

  private func matched(_ frame: Matched, _ part: PatternPart) throws(WireError) {
    // This node's routes say that another node serves the topic.
    var isDoubtful = false
    if frame.place.epoch != 0, hasBegun {
      let route = relay.route(of: frame.topic)
      if route == .local { return }
      isDoubtful = route != .remote(part.node)
      try pattern?.giveUp(frame.topic)
    }
    let match = try topics.matched(frame, from: part.source) { pattern?.newNumber() ?? 0 }
    switch match {
    case .announce(let frame):
      queue.append(frame, part: part.index, stream: stream)
      if isDoubtful { lookForOrphans() }
    case .gone(let number):
      if let number { queue.append(Unmatched(number: number), part: part.index, stream: stream) }
    case .ignore: break
    case .reopen: reopen(part)
    }
  }

  private func select(_ number: UInt32, _ part: PatternPart) {
    topics.select(number, from: part.source)
    guard number == 0, !part.isComplete else { return }
    part.completed()
    if !part.wasAnnounced {
      part.wasAnnounced = true
      queue.append(.announced, part: part.index)
    }
    haveBegun()
    lookForOrphans()
  }

  private func becameLive(_ part: PatternPart) {
    guard !part.wasLive else { return }
    part.wasLive = true
    queue.append(.live, part: part.index)
  }

  /// Counts received records. If records have become so much longer that they exceed the memory for the loan, the stream is opened again with a small loan.
  private func track(_ bytes: Int, of part: PatternPart) {
    part.unwrittenBytes += bytes + FrameHeader.size
    if part.unwrittenBytes > DemandWindow.bound(record: part.longestRecord) { reopen(part) }
  }
}
