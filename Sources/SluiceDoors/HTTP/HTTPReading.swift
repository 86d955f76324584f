import SluiceCommand
import SluiceHTTP
import SluiceSession
import SluiceWire

/// `GET /topics/NAME`: streams records, until the client closes the connection, `count` records have come, the topic ends, or, with `until=live`, replay is over.
///
/// The name may be a pattern. The answer is objects of JSON on lines; server-sent events where the client takes `text/event-stream`; or the payloads alone where
/// it takes `application/octet-stream`, which ends without its last chunk when the topic has failed.
///
/// The ids of a topic's events are offsets, and the id of the event of its end is `end`. A pattern's events have no ids: one offset can't say where many topics
/// go on. Demand follows the connection: what the client doesn't read isn't asked for.
final class HTTPReading: HTTPExchange {
  private struct Held {
    var topic: Topic
    var offset: UInt64
    var count: Int
    var bytes: [UInt8]
  }

  private final class Topic {
    let name: String
    var epoch: UInt64
    var time: Int64 = 0

    init(_ name: String, epoch: UInt64 = 0) {
      self.name = name
      self.epoch = epoch
    }
  }

  private unowned let connection: HTTPConnection
  private var stream: UInt32
  /// What it shares with others; nil for requests, whose objects are for one reader each.
  private let texts: HTTPTexts?
  private var writer: HTTPRecordWriter
  private let endsWhenLive: Bool
  private let isPattern: Bool
  private let areRequests: Bool
  private let filter: RecordFilter
  /// The offset of the last record that the client has had, as it says, while the broker is asked where the topic ends.
  private var hadOffset: UInt64?
  /// Whether the client has had records of another life of the topic.
  private var isRestarted = false
  /// Records that are still wanted; nil for all.
  private var wanted: UInt64?
  /// The durable cursor that it moves; empty for none.
  private let cursor: String
  /// The records that may be asked for and not written to the client yet; nil for no limit.
  private let window: UInt64?
  /// How long nothing may be written; nil for ever.
  private let interval: Duration?
  private var granted: UInt64
  private var delivered: UInt64 = 0
  /// Behind the last record that was put into the answer, and where the cursor stands.
  private var nextOffset: UInt64 = 0
  private var committed: UInt64 = 0
  private var hasBegun = false
  /// Set when nothing more comes: what is held is sent, then the answer ends.
  private var isEnding = false
  /// A topic has failed in an answer that can't say so.
  private var isBroken = false
  private var topics: [UInt32: Topic] = [:]
  private var current: Topic?
  private var held: [Held] = []
  private var keepalive: HTTPStreamKeepalive?

  /// - Parameters:
  ///   - resumption: where a client goes on that has had events of the topic.
  ///   - areRequests: whether the records are requests that the client replies to: they begin with the next one unless `from` says otherwise, the topic is
  ///     created where it isn't there, and each object has the address for its reply.
  init(
    _ request: HTTPRequest, _ resumption: HTTPResumption, areRequests: Bool = false,
    by connection: HTTPConnection
  ) throws(HTTPProblem) {
    self.connection = connection
    let name = request.path[1]
    isPattern = TopicPattern.hasWildcards(name)
    writer = HTTPRecordWriter(
      request.accepts("text/event-stream")
        ? (isPattern ? .eventsOfMany : .events)
        : request.accepts("application/octet-stream") && !areRequests ? .raw : .lines,
      namesReply: areRequests)
    switch request.parameter("until") {
    case nil: endsWhenLive = false
    case "live": endsWhenLive = true
    default: throw HTTPProblem(400, "until can be live")
    }
    let start = try request.start(otherwise: areRequests ? .new : .replay)
    wanted = try request.count()
    filter = try request.filter()
    self.areRequests = areRequests
    if case .behind(let offset) = resumption { hadOffset = offset }
    cursor = request.parameter("cursor") ?? ""
    guard cursor.isEmpty || !isPattern else { throw HTTPProblem(400, "a cursor belongs to one topic") }
    window = try request.number("demand")
    guard window ?? 1 > 0 else { throw HTTPProblem(400, "demand must be a number from 1 on") }
    interval = try HTTPStreamKeepalive.interval(request, writer.format, connection.options)
    do throws(WireError) {
      if isPattern { _ = try TopicPattern(name) } else { try TopicName.validate(name) }
    } catch {
      throw HTTPProblem(error)
    }
    granted = min(wanted ?? Credit.unlimited, window ?? Credit.unlimited)
    let first = hadOffset == nil ? granted : 0
    guard let stream = connection.native.openSubscription(granted: first, isPattern: isPattern) else {
      throw HTTPProblem(429, "the connection has too many streams")
    }
    self.stream = stream
    texts = areRequests ? nil : connection.texts
    texts?.readers += 1
    if isPattern {
      connection.link.send(
        SubscribePattern(
          pattern: name, start: start, grantedThrough: granted, filter: filter),
        stream: stream)
    } else {
      current = Topic(name)
      if hadOffset == nil {
        subscribe(name, from: start, granted: granted, cursor: cursor)
      } else {
        subscribe(name, from: .new, granted: 0, cursor: "")
      }
    }
  }

  private func subscribe(_ topic: String, from start: Subscribe.Start, granted: UInt64, cursor: String) {
    connection.link.send(
      Subscribe(
        topic: topic, start: start, ifMissing: areRequests ? .create : .fail, grantedThrough: granted,
        cursor: cursor, filter: filter), stream: stream)
  }

  /// Goes on behind the last record that the client has had, now that the end of the topic is known.
  ///
  /// A client that has had offsets which the topic doesn't have yet has had records of another life of it: of one that was in memory, say, before the broker was
  /// started again. It gets all records of this one.
  private func begin(behind offset: UInt64, end: UInt64, of topic: String) {
    (hadOffset, isRestarted) = (nil, end <= offset)
    let former = stream
    guard let stream = connection.native.openSubscription(granted: granted, isPattern: false) else {
      return failed(HTTPProblem(429, "the connection has too many streams"))
    }
    self.stream = stream
    subscribe(topic, from: isRestarted ? .earliest : .offset(offset + 1), granted: granted, cursor: cursor)
    // Behind the one that takes its place: a topic that is left by its last subscriber may start over.
    if connection.native.cancel(former) { connection.link.send(Cancel(), stream: former) }
  }

  deinit { texts?.readers -= 1 }

  var isHeld: Bool { !held.isEmpty }
  var heldBytes: Int { held.reduce(0) { $0 + $1.bytes.count } }

  func received(_ action: ClientAction) {
    guard !isEnding else { return }
    switch action {
    case .subscribed(_, let place):
      if let hadOffset, let topic = current?.name {
        return begin(behind: hadOffset, end: place.liveOffset, of: topic)
      }
      hasBegun = true
      (nextOffset, committed) = (place.nextOffset, place.nextOffset)
      current?.epoch = place.epoch
      connection.beginAnswer(type: writer.format.contentType)
      if isRestarted, let topic = current?.name {
        event("restarted", "{\"topic\":\(JSONText.quoted(topic))}")
      }
      beginKeepalive()
    case .deliver(_, let header, let batch):
      guard let current else { return }
      keepalive?.note()
      if held.isEmpty {
        unsafe deliver(batch, of: current, from: header.firstOffset, count: Int(header.count))
      } else {
        held.append(
          Held(
            topic: current, offset: header.firstOffset, count: Int(header.count), bytes: unsafe Array(batch)))
      }
    case .matched(_, let matched):
      topics[matched.number] = Topic(matched.topic, epoch: matched.place.epoch)
    case .unmatched(_, let number): topics[number] = nil
    case .selectedTopic(_, let number): current = topics[number]
    case .live where endsWhenLive && (!isPattern || current == nil): isEnding = true
    case .lagged(_, let lag): event("missed", "\(lag.missed)")
    case .topicEnded(_, let ending): ended(ending)
    case .ended(_, let ending):
      ended(ending)
      isEnding = true
    case .refused(_, let fault): failed(HTTPProblem(WireError(fault)))
    default: break
    }
  }

  /// A client of server-sent events passes over comments, so they can come without being asked for.
  private func beginKeepalive() {
    guard let interval, interval > .zero, let filler = writer.format.filler else { return }
    keepalive = HTTPStreamKeepalive(every: interval, on: connection.loop) { [weak self] in
      guard let self, !isEnding, connection.session.output.isEmpty else { return }
      connection.append(chunk: filler)
      connection.endTurn()
    }
  }

  private func ended(_ ending: Complete.Ending) {
    guard let name = current?.name else { return }
    switch ending {
    case .finished: event("finished", "{\"topic\":\(JSONText.quoted(name))}")
    case .failure(let code, let message):
      if writer.format == .raw { isBroken = true }
      event(
        "failure",
        "{\"topic\":\(JSONText.quoted(name)),\"code\":\(code.rawValue),\"message\":\(JSONText.quoted(message))}"
      )
    }
  }

  private func event(_ name: String, _ object: String) {
    var chunk: [UInt8] = []
    writer.format.append(event: name, object, to: &chunk)
    connection.append(chunk: chunk)
  }

  /// Puts records into the answer, run by run, while the client reads.
  private func deliver(
    _ batch: UnsafeRawBufferPointer, of topic: Topic, from offset: UInt64, count: Int
  ) {
    var iterator = unsafe BatchIterator(batch, time: topic.time)
    var (offset, left) = (offset, count)
    while left > 0 {
      if connection.session.output.count > HTTPConnection.maximumOutput {
        let rest = unsafe iterator.rest
        held.append(Held(topic: topic, offset: offset, count: left, bytes: unsafe Array(rest)))
        break
      }
      let most = min(left, Int(clamping: wanted ?? .max))
      guard most > 0 else { break }
      let written = writeRun(&iterator, of: topic, from: offset, atMost: most)
      guard written > 0 else { break }
      offset += UInt64(written)
      delivered += UInt64(written)
      left -= written
      nextOffset = offset
      if let wanted { self.wanted = wanted - UInt64(written) }
    }
    topic.time = iterator.time
    if wanted == 0 { isEnding = true }
  }

  /// Puts a run of records into the answer: as another reader has written it, or written for all.
  ///
  /// - Returns: their number; 0 at the end of the batch.
  private func writeRun(
    _ iterator: inout BatchIterator, of topic: Topic, from offset: UInt64, atMost most: Int
  ) -> Int {
    let place = HTTPTexts.Place(
      offset: offset, epoch: topic.epoch, format: writer.format, topic: topic.name)
    if let known = texts?.find(place, atMost: most) {
      // The records are passed over, for what follows them. The broker's batches are in order.
      for _ in 0..<known.count { _ = try? iterator.next() }
      connection.append(sharedChunk: known.chunk)
      return known.count
    }
    var text: [UInt8] = []
    var count = 0
    while count < most, text.count < HTTPTexts.longRun, let record = try? iterator.next() {
      writer.append(record, topic: topic.name, offset: offset + UInt64(count), to: &text)
      count += 1
    }
    guard count > 0 else { return 0 }
    let chunk = HTTPChunk.framed(text)
    texts?.keep(place, count: count, chunk)
    connection.append(sharedChunk: chunk)
    return count
  }

  func turnEnds() {
    while let next = held.first, connection.session.output.count <= HTTPConnection.maximumOutput {
      held.removeFirst()
      let later = held
      held = []
      unsafe next.bytes.withUnsafeBytes {
        unsafe deliver($0, of: next.topic, from: next.offset, count: next.count)
      }
      held += later
    }
    if held.isEmpty { passWritten() }
    guard isEnding, held.isEmpty else { return }
    // The cursor goes on behind what the connection has taken, so that comes first.
    guard cursor.isEmpty || connection.session.output.isEmpty else { return }
    finish(isWhole: !isBroken)
  }

  /// Everything so far has been written to the connection: the cursor goes on, and more is asked for.
  private func passWritten() {
    guard connection.session.output.isEmpty else { return }
    if !cursor.isEmpty, nextOffset > committed {
      committed = nextOffset
      connection.link.send(Commit(nextOffset: nextOffset), stream: stream)
    }
    guard let window, granted < Credit.unlimited, !isEnding else { return }
    let through = min(delivered + window, wanted.map { delivered + $0 } ?? .max - 1)
    guard through > granted else { return }
    granted = through
    if connection.native.grant(stream, through: through) {
      connection.link.send(Demand(grantedThrough: through), stream: stream)
    }
  }

  private func finish(isWhole: Bool) {
    if connection.native.cancel(stream) { connection.link.send(Cancel(), stream: stream) }
    connection.endAnswer(isWhole: isWhole)
  }

  func failed(_ problem: HTTPProblem) {
    guard hasBegun else { return connection.refuse(problem) }
    event(
      "error", "{\"code\":\(problem.code?.number ?? 0),\"message\":\(JSONText.quoted(problem.message))}")
    finish(isWhole: false)
  }
}
