import SluiceIO
import SluiceSession
import SluiceWire

/// The output of a connection: encoded frames, and the subscriptions and publications that have something to send at the end of a turn. Holds the session,
/// whose credit limits how much may be sent. On the loop only.
final class ConnectionOutput {
  /// With this many bytes waiting for the transport, no grants are sent and no records are taken from publications.
  private static let limit = 256 << 10

  var session: ClientSession
  private let core: ClientCore
  private var buffer = OutputBuffer()
  /// Subscriptions that may have grants or commits to send.
  private var dueSubscriptions: [RemoteSubscription] = []
  /// Subscriptions whose topics have ended and whose subscribers may still commit records.
  private var committing: [RemoteSubscription] = []
  /// Publications that may have something to send.
  private var duePublications: [Publication] = []
  /// The last PING that waits for its answer while the broker doesn't read; its answer counts for the earlier ones.
  private var unansweredPing: UInt64?

  init(_ core: ClientCore) {
    self.core = core
    session = ClientSession(features: core.options.routing == .direct ? Feature.redirects : 0)
  }

  /// Appends a frame to the output, which is written at the end of this turn.
  func send(_ frame: some Frame, flags: UInt8 = 0, stream: UInt32) {
    buffer.append { frame.encode(flags: flags, stream: stream, into: &$0) }
    core.flushSoon()
  }

  /// Writes as much as the transport takes. Returns why the transport has failed, if so.
  func write(to transport: any ByteStream) -> IOError? {
    buffer.write(to: transport)
  }

  /// Bytes that wait for the transport.
  var count: Int { buffer.count }
  /// Whether more output waits for the transport.
  var hasMore: Bool { !duePublications.isEmpty || !dueSubscriptions.isEmpty || unansweredPing != nil }
  /// Whether commits may follow the end of a topic.
  var isCommitting: Bool { !committing.isEmpty }

  func noteDue(_ subscription: RemoteSubscription) {
    guard !subscription.isDue, subscription.phase == .open || subscription.commitStream != 0 else { return }
    subscription.isDue = true
    dueSubscriptions.append(subscription)
    core.flushSoon()
  }

  func noteDue(_ publication: Publication) {
    guard !publication.isDue, publication.isOpen else { return }
    publication.isDue = true
    duePublications.append(publication)
    core.flushSoon()
  }

  /// Answers a PING: at once while the broker reads; otherwise only the last of several, when it reads again.
  func answerPing(_ token: UInt64) {
    guard buffer.count < Self.limit else {
      unansweredPing = token
      return
    }
    send(Pong(token: token), stream: 0)
  }

  /// Answers the PING that has waited until the broker reads.
  func sendPong() {
    guard buffer.count < Self.limit, let token = unansweredPing.take() else { return }
    buffer.append(Pong(token: token), stream: 0)
  }

  /// Sends at most one DEMAND for each subscription and turn.
  func sendGrants() {
    // Grants are cumulative, so those for a broker that doesn't read are sent later as one.
    guard !dueSubscriptions.isEmpty, buffer.count < Self.limit else { return }
    for subscription in dueSubscriptions {
      subscription.isDue = false
      sendCommit(of: subscription)
      guard subscription.phase == .open, !subscription.isCancelled else {
        finishCommitting(subscription)
        continue
      }
      let granted = subscription.nextGrant()
      if session.grant(subscription.stream, through: granted) {
        buffer.append(Demand(grantedThrough: granted), stream: subscription.stream)
      }
    }
    dueSubscriptions.removeAll(keepingCapacity: dueSubscriptions.capacity <= 64)
  }

  /// Sends a group member's settlements, one frame for each run of records.
  func sendSettlements(of subscription: RemoteSubscription) {
    for run in subscription.takeSettlements() {
      send(
        Settle(
          run.verdict, delivery: run.delivery, firstOffset: run.first, count: run.count,
          delay: run.delay),
        stream: subscription.stream)
    }
  }

  /// Sends a durable cursor's position if it has moved.
  func sendCommit(of subscription: RemoteSubscription) {
    if let offset = subscription.nextCommit() {
      buffer.append(Commit(nextOffset: offset), stream: subscription.commitStream)
    }
  }

  /// Releases the stream number of a subscription whose topic has ended, if nothing more is to be committed on it.
  func finishCommitting(_ subscription: RemoteSubscription) {
    guard subscription.phase != .open, subscription.commitStream != 0, subscription.isDoneCommitting else {
      return
    }
    session.releaseCommitting(subscription.commitStream)
    subscription.commitStream = 0
    committing.removeAll { $0 === subscription }
  }

  /// Keeps sending the commits of a subscription whose topic has ended on `stream`.
  func keepCommitting(_ subscription: RemoteSubscription, on stream: UInt32) {
    subscription.commitStream = stream
    committing.append(subscription)
    sendCommit(of: subscription)
    finishCommitting(subscription)
    core.flushSoon()
  }

  /// Sends the commits of subscriptions whose topics have ended: the client closes.
  func sendLastCommits() {
    for subscription in committing { sendCommit(of: subscription) }
  }

  /// Takes the granted records from the due publications in turn, until the limit is reached.
  ///
  /// - Parameters:
  ///   - maximumFrame: the longest frame that the broker accepts, in bytes.
  ///   - release: ends a publication that was given up and has sent everything.
  func servePublications(maximumFrame: Int, release: (Publication) -> Void) {
    var next = 0
    while next < duePublications.count, buffer.count < Self.limit {
      let publication = duePublications[next]
      next += 1
      publication.isDue = false
      if serve(publication, maximumFrame, release) { noteDue(publication) }
    }
    duePublications.removeFirst(next)
  }

  /// Clears the due publications: a broker that is about to close accepts no records, and the publications send them on the next connection.
  func forgetDuePublications() {
    for publication in duePublications { publication.isDue = false }
    duePublications = []
  }

  /// Returns whether more granted records wait to be sent.
  private func serve(
    _ publication: Publication, _ maximumFrame: Int, _ release: (Publication) -> Void
  ) -> Bool {
    guard publication.isOpen else { return false }
    let stream = publication.stream
    let available = session.available(stream)
    if available > 0 { publish(from: publication, atMost: available, maximumFrame) }
    publication.requestMore(granted: session.available(stream))
    switch publication.outlook {
    case .more: return session.available(stream) > 0
    case .idle, .blocked: break
    case .complete(let ending):
      if session.completePublication(stream) {
        publication.completionSent()
        buffer.append(Complete(ending), stream: stream)
      }
    case .release: release(publication)
    }
    return false
  }

  /// Encodes one PUBLISH in place, at the end of the buffer.
  private func publish(from publication: Publication, atMost available: UInt64, _ maximumFrame: Int) {
    let stream = publication.stream
    let limit = min(
      maximumFrame - PublishHeader.size, Publication.batchSize, Int(clamping: session.availableBytes(stream)))
    var calls: Publication.Calls = []
    buffer.append { bytes in
      let start = bytes.count
      bytes.append(contentsOf: repeatElement(0, count: FrameHeader.size + PublishHeader.size))
      let count = publication.take(
        records: UInt32(clamping: available), bytes: limit, into: &bytes, calls: &calls)
      guard count > 0 else { return bytes.removeLast(bytes.count - start) }
      let length = bytes.count - start - FrameHeader.size - PublishHeader.size
      let first = session.publish(stream, count: count, bytes: length)
      let header = PublishHeader(firstSequence: first, count: count)
      unsafe bytes.withUnsafeMutableBytes {
        unsafe header.write(at: $0.baseAddress! + start, stream: stream, batchLength: length)
      }
    }
    Publication.run(calls)
  }

  /// Clears all output, because the connection is closed.
  func removeAll() {
    for subscription in dueSubscriptions { subscription.isDue = false }
    for subscription in committing { subscription.commitStream = 0 }
    forgetDuePublications()
    dueSubscriptions = []
    committing = []
    unansweredPing = nil
    buffer.removeAll()
  }
}

/// Encoded frames that wait for the transport.
struct OutputBuffer {
  private(set) var bytes: [UInt8] = []
  private var head = 0

  /// Up to this capacity, the memory is reused in the next turn.
  private static let keptCapacity = 1 << 20

  var count: Int { bytes.count - head }

  mutating func append(_ frame: some Frame, stream: UInt32) {
    frame.encode(stream: stream, into: &bytes)
  }

  /// Lets `body` append encoded frames.
  mutating func append<Result>(_ body: (inout [UInt8]) -> Result) -> Result {
    body(&bytes)
  }

  /// Writes as much as the transport takes. Returns why the transport has failed, if so.
  mutating func write(to stream: any ByteStream) -> IOError? {
    guard count > 0 else { return nil }
    let head = head
    let result = unsafe bytes.withUnsafeBytes {
      unsafe stream.write(UnsafeRawBufferPointer(rebasing: $0[head...]))
    }
    switch result {
    case .failed(let error): return error
    case .wrote(let written): self.head += written
    }
    if self.head == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
      self.head = 0
    }
    return nil
  }

  mutating func removeAll() {
    bytes = []
    head = 0
  }
}
