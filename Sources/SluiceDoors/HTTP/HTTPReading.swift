import SluiceCommand
import SluiceHTTP
import SluiceSession
import SluiceWire

/// `GET /topics/NAME`: streams records until the client closes the connection, `count` records were sent, the topic ends, or, with `until=live`, replay is
/// complete.
///
/// The name may be a pattern. The answer consists of JSON objects on lines; of server-sent events if the client accepts `text/event-stream`; or of the
/// payloads alone if it accepts `application/octet-stream`. The last form omits its last chunk if the topic has failed.
///
/// The IDs of a topic's events, including that of its end, are of the form ``HTTPEventID``. A pattern's events have no IDs, because one offset can't give the
/// position in several topics. Demand follows the connection: the gateway requests no more records than the client reads.
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
  /// Texts that readers share; nil for requests, since each of their objects is for one reader.
  private let texts: HTTPTexts?
  private let terms: HTTPReadingTerms
  private var writer: HTTPRecordWriter
  /// The last event that the client reports to have received; nil if it reported none, or once this was processed.
  private var had: HTTPEventID?
  /// Whether the subscription only looks up the head of the topic.
  private var isAsking: Bool
  /// Whether the client has received records of another epoch of the topic.
  private var isRestarted = false
  /// Records that remain of the request's `count`; nil for no limit.
  private var wanted: UInt64?
  private var granted: UInt64
  private var delivered: UInt64 = 0
  /// The offset after the last record in the answer, and the committed position of the cursor.
  private var nextOffset: UInt64 = 0
  private var committed: UInt64 = 0
  private var hasBegun = false
  /// Set when no more records follow: held records are sent, then the answer ends.
  private var isEnding = false
  /// Whether a topic has failed and the format can't report it.
  private var isBroken = false
  private var topics: [UInt32: Topic] = [:]
  private var current: Topic?
  private var held: [Held] = []
  private var keepalive: HTTPStreamKeepalive?

  /// - Parameter resumption: where a client resumes that has received events of the topic.
  init(
    _ terms: HTTPReadingTerms, _ resumption: HTTPResumption, by connection: HTTPConnection
  ) throws(HTTPProblem) {
    self.connection = connection
    self.terms = terms
    writer = HTTPRecordWriter(terms.format, namesReply: terms.areRequests)
    wanted = terms.count
    if case .behind(let id) = resumption { had = id }
    let (window, isPattern, areRequests) = (terms.window, terms.isPattern, terms.areRequests)
    granted = min(wanted ?? Credit.unlimited, window ?? Credit.unlimited)
    // With an epoch in the ID, the broker itself finds the position. A cursor has its own position.
    let isPlaced = had?.epoch != nil && terms.cursor.isEmpty
    isAsking = had != nil && !isPlaced
    let first = isAsking ? 0 : granted
    guard let stream = connection.native.openSubscription(granted: first, isPattern: isPattern) else {
      throw HTTPProblem(429, "the connection has too many streams")
    }
    self.stream = stream
    texts = areRequests ? nil : connection.texts
    texts?.readers += 1
    guard !isPattern else {
      connection.link.send(
        SubscribePattern(
          pattern: terms.name, start: terms.start, grantedThrough: granted, filter: terms.filter),
        stream: stream)
      return
    }
    current = Topic(terms.name)
    switch had {
    case nil: subscribe(from: terms.start, granted: granted, cursor: terms.cursor)
    case let id? where isPlaced: subscribe(from: .offset(id.offset + 1), of: id.epoch, granted: granted)
    case let id?: subscribe(from: .new, of: id.epoch, granted: 0)
    }
  }

  /// - Parameter epoch: the epoch of the topic to read; nil for any.
  private func subscribe(
    from start: Subscribe.Start, of epoch: UInt64? = nil, granted: UInt64, cursor: String = ""
  ) {
    connection.link.send(
      Subscribe(
        topic: terms.name, start: start, ifMissing: terms.areRequests ? .create : .fail, epoch: epoch ?? 0,
        grantedThrough: granted, cursor: cursor, filter: terms.filter), stream: stream)
  }

  /// Resumes after the last record that the client received, now that the topic's head is known.
  ///
  /// If that offset isn't below the head, the client has received records of another epoch, such as one of an in-memory topic before the broker restarted.
  /// The client then gets all records of the current epoch.
  private func begin(behind offset: UInt64, end: UInt64) {
    isRestarted = end <= offset
    let former = stream
    begin(from: isRestarted ? .earliest : .offset(offset + 1))
    // Cancels only after the new subscription: a topic whose last subscriber leaves may start over.
    if connection.native.cancel(former) { connection.link.send(Cancel(), stream: former) }
  }

  /// The client has received records of an epoch that the current one doesn't continue: it gets all records of the current one.
  private func restart() {
    isRestarted = true
    begin(from: .earliest)
  }

  /// Subscribes on another stream.
  private func begin(from start: Subscribe.Start) {
    (had, isAsking) = (nil, false)
    guard let stream = connection.native.openSubscription(granted: granted, isPattern: false) else {
      return failed(HTTPProblem(429, "the connection has too many streams"))
    }
    self.stream = stream
    subscribe(from: start, granted: granted, cursor: terms.cursor)
  }

  deinit { texts?.readers -= 1 }

  var isHeld: Bool { !held.isEmpty }
  var heldBytes: Int { held.reduce(0) { $0 + $1.bytes.count } }

  func received(_ action: ClientAction) {
    guard !isEnding else { return }
    switch action {
    case .subscribed(_, let place):
      if let had, isAsking { return begin(behind: had.offset, end: place.liveOffset) }
      hasBegun = true
      writer.begin(place.epoch)
      (nextOffset, committed) = (place.nextOffset, place.nextOffset)
      current?.epoch = place.epoch
      connection.beginAnswer(type: writer.format.contentType)
      if isRestarted, let topic = current?.name {
        event("restarted", "{\"topic\":\(JSONText.quoted(topic))}")
      }
      if let had, place.continues, place.nextOffset <= had.offset, let topic = current?.name {
        event("rewound", "{\"topic\":\(JSONText.quoted(topic)),\"offset\":\(place.nextOffset)}")
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
    case .live where terms.endsWhenLive && (!terms.isPattern || current == nil): isEnding = true
    case .lagged(_, let lag): event("missed", "\(lag.missed)")
    case .topicEnded(_, let ending): ended(ending)
    case .ended(_, let ending):
      ended(ending)
      isEnding = true
    case .refused(_, let fault) where had?.epoch != nil && !hasBegun && fault.code == .epochChanged: restart()
    case .refused(_, let fault): failed(HTTPProblem(WireError(fault)))
    default: break
    }
  }

  /// Clients of server-sent events ignore comments, so keepalives need no option.
  private func beginKeepalive() {
    guard let interval = terms.interval, interval > .zero, let filler = writer.format.filler else { return }
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
    writer.append(event: name, object, to: &chunk)
    connection.append(chunk: chunk)
  }

  /// Appends records to the answer, run by run, while the client reads.
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

  /// Appends a run of records to the answer: text that another reader has already produced, or new text that is kept for all readers.
  ///
  /// - Returns: the number of records; 0 at the end of the batch.
  private func writeRun(
    _ iterator: inout BatchIterator, of topic: Topic, from offset: UInt64, atMost most: Int
  ) -> Int {
    let place = HTTPTexts.Place(
      offset: offset, epoch: topic.epoch, format: writer.format, topic: topic.name)
    if let known = texts?.find(place, atMost: most) {
      // Skips the records to reach those after them. The broker's batches are in order.
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
    // The cursor moves past records only once the connection has taken them, so the output must be empty.
    guard terms.cursor.isEmpty || connection.session.output.isEmpty else { return }
    finish(isWhole: !isBroken)
  }

  /// All output so far was written to the connection: commits the cursor, and requests more records.
  private func passWritten() {
    guard connection.session.output.isEmpty else { return }
    if !terms.cursor.isEmpty, nextOffset > committed {
      committed = nextOffset
      connection.link.send(Commit(nextOffset: nextOffset), stream: stream)
    }
    guard let window = terms.window, granted < Credit.unlimited, !isEnding else { return }
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
