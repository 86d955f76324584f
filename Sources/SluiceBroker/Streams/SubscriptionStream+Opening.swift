import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire

// How a subscription begins: finds its start, if necessary in the store, and attaches its durable cursor.
extension SubscriptionStream {
  static func open(_ stream: UInt32, _ frame: Subscribe, on streams: StreamMultiplexer) throws(WireError) {
    let topic = try Self.topic(of: frame, on: streams)
    if let known = KnownHistory(frame) { topic.compare(known, on: streams.topics) }
    let isAsked = topic.findStart(frame.start, streams.pending(stream)) { streams, start in
      var frame = frame
      frame.start = start
      // The client may have requested more meanwhile.
      frame.grantedThrough = streams.session.granted(stream) ?? frame.grantedThrough
      streams.attempt(stream) { () throws(WireError) in
        try open(stream, frame, of: try Self.topic(of: frame, on: streams), on: streams)
      }
    }
    if !isAsked { try open(stream, frame, of: topic, on: streams) }
  }

  private static func topic(of frame: Subscribe, on streams: StreamMultiplexer) throws(WireError) -> Topic {
    try streams.client.topic(
      frame.topic, for: .subscribe, ifMissing: frame.ifMissing, stating: frame.settings)
  }

  private static func open(
    _ stream: UInt32, _ frame: Subscribe, of topic: Topic, on streams: StreamMultiplexer
  ) throws(WireError) {
    try topic.withSubscription(on: streams.topics) { loopState, epoch, buffered throws(WireError) in
      let begin = { (frame: Subscribe, reader: TopicEpoch.Reader?) throws(WireError) in
        try epoch.start(
          frame, as: reader, lag: topic.settings.lag, buffered: buffered, wallClock: streams.loop.wallClock)
      }
      var position: (cursor: LogCursor, missed: UInt64)
      var use: Topic.CursorUse?
      if frame.cursor.isEmpty {
        position = try begin(frame, nil)
      } else {
        let continuation = streams.continuation(of: stream)
        let holder = CursorTable.Holder { _, loss in
          continuation.resume { (subscription: SubscriptionStream) in subscription.cursorLost(loss) }
        }
        let found = try topic.useCursor(
          frame, in: epoch, holder, by: streams.client.keeper, now: streams.loop.now, start: begin)
        position = (found.cursor, found.missed)
        use = found
      }
      let (cursor, missed) = position
      let liveOffset = max(epoch.log.head, cursor.nextOffset)
      let subscription = SubscriptionStream(
        stream: stream, loopState: loopState, epoch: epoch, streams: streams, cursor: cursor,
        liveOffset: liveOffset, lag: frame.lag, granted: frame.grantedThrough, isResuming: frame.epoch != 0,
        matcher: RecordMatcher(unlessEmpty: frame.filter), wantsProducers: frame.wantsProducers)
      if let use { subscription.durable = DurablePlace(use, name: frame.cursor) }
      subscription.isShareable =
        streams.client.isNode && frame.cursor.isEmpty && frame.filter.isEmpty && topic.isShareable
      loopState.add(subscription)
      streams.attach(subscription, to: stream)
      subscription.opened(
        Subscribed(
          epoch: subscription.epochNumber, nextOffset: cursor.nextOffset, liveOffset: liveOffset,
          gaps: subscription.leavesGaps, continues: epoch.continuing(frame.epoch, at: 0) != nil,
          isShareable: subscription.isShareable),
        missed: missed, isNew: use?.isNew ?? false)
    }
  }
}
