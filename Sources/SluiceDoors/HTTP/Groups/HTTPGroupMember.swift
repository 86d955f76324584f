import SluiceHTTP
import SluiceIO
import SluiceSession
import SluiceWire
import Synchronization

/// A member of a consumer group for HTTP requests, which may arrive on different connections. The member has its own link to the broker, with the credentials
/// of the request that created it.
///
/// ```
///  POST …/next ─► HTTPGroupMember ─ JOIN, DEMAND ─► broker         the answer names the member: Sluice-Member
///  POST …/ack  ─►        "        ─ SETTLE ───────►
/// ```
///
/// Records that were delivered but not settled return to the group at their deadline, or when the member leaves. The member leaves once it has received no
/// request for the deadline, and for at least 60 s. Records that arrive after their request was answered are kept for the next request.
// @unchecked: belongs to `loop`. Other threads use it only through jobs on that loop.
final class HTTPGroupMember: DoorLinkClient, @unchecked Sendable {
  struct Key: Hashable, Sendable {
    var topic: String
    var group: String
    var credentials: Credentials
    var peerName: String?
  }

  /// Receives a request's answer: records as JSON lines, empty if the wait timed out, and whether the member still exists.
  typealias Answer = @Sendable (Result<(lines: [UInt8], isMember: Bool), HTTPProblem>) -> Void

  private struct Waiting {
    var number: UInt64
    var count: Int
    var answer: Answer
    var timer: TimerToken?
  }

  /// The shortest time without requests after which a member leaves.
  private static let patience = Duration.seconds(60)

  let token: String
  let key: Key
  let loop: any EventLoop
  private let start: Subscribe.Start
  private let settings: JoinGroup.Settings
  private unowned let table: HTTPGroupMembers
  private var link: DoorLink?
  private var native = ClientSession()
  private var stream: UInt32?
  private var isJoined = false
  private var waiting: Waiting?
  private var granted: UInt64 = 0
  private var delivered: UInt64 = 0
  private var delivery: UInt32 = 1
  private var time: Int64 = 0
  /// Records that no request has returned yet, as lines, by offset.
  private var ready: [(offset: UInt64, delivery: UInt32, line: [UInt8])] = []
  /// The delivery count of each record that a request has returned and that isn't settled, by offset.
  private var open: [UInt64: UInt32] = [:]
  private var idleTimer: TimerToken?

  var heldBytes: Int { ready.reduce(0) { $0 + $1.line.count } }

  init(
    _ key: Key, start: Subscribe.Start, _ settings: JoinGroup.Settings, in table: HTTPGroupMembers,
    on loop: any EventLoop
  ) {
    self.key = key
    self.start = start
    self.settings = settings
    self.table = table
    self.loop = loop
    token =
      String(UInt64.random(in: .min ... .max), radix: 36)
      + String(UInt64.random(in: .min ... .max), radix: 36)
  }

  /// Connects to the broker as a client at `peer`.
  func open(_ peer: SocketAddress, _ security: StreamSecurity?, accept: (any ByteStream) -> Void) {
    let link = DoorLink(self, isInternal: true, peer: peer, on: loop)
    link.adopt(security)
    self.link = link
    accept(link)
  }

  // MARK: Requests

  /// Returns up to `count` records: at least one, or none after `wait`. Only one request waits at a time; an earlier one is answered with the records that
  /// are ready.
  func next(_ number: UInt64, _ count: Int, wait: Duration, _ answer: @escaping Answer) {
    guard link != nil else { return answer(.failure(Self.gone)) }
    finishWaiting()
    rearm()
    let timer = loop.schedule(after: wait) { [weak self] in self?.finishWaiting() }
    waiting = Waiting(number: number, count: count, answer: answer, timer: timer)
    if ready.isEmpty { ask() } else { finishWaiting() }
  }

  /// Called when the request's client has disconnected before its answer.
  func abandon(_ number: UInt64) {
    guard waiting?.number == number else { return }
    if let timer = waiting?.timer { loop.cancel(timer) }
    waiting = nil
    if open.isEmpty { leave() }
  }

  /// Settles records; without offsets, all records that requests have returned.
  ///
  /// - Parameter delay: as in `Settle.delay`.
  /// - Returns: how many of the records the member had.
  func settle(
    _ verdict: Settle.Verdict, _ offsets: [ClosedRange<UInt64>]?, delay: UInt32
  ) -> Result<Int, HTTPProblem> {
    guard let stream, link != nil else { return .failure(Self.gone) }
    rearm()
    var count = 0
    let named = offsets.map { ranges in open.keys.filter { key in ranges.contains { $0.contains(key) } } }
    for offset in (named ?? Array(open.keys)).sorted() {
      guard let delivery = open[offset] else { continue }
      if verdict != .extend { open[offset] = nil }
      link?.send(
        Settle(verdict, delivery: delivery, firstOffset: offset, count: 1, delay: delay), stream: stream)
      count += 1
    }
    link?.wake()
    return .success(count)
  }

  /// Leaves the group, which then delivers the unsettled records again.
  func leave() { end(Self.gone) }

  static let gone = HTTPProblem(
    410,
    "there is no such member, or it has left and its unsettled records are delivered again; repeat the request without member"
  )

  // MARK: Records

  private func ask() {
    guard isJoined, let stream, let waiting else { return }
    let outstanding = granted - min(granted, delivered)
    guard outstanding < UInt64(waiting.count) else { return }
    granted = delivered + UInt64(waiting.count)
    if native.grant(stream, through: granted) { link?.send(Demand(grantedThrough: granted), stream: stream) }
    link?.wake()
  }

  private func deliver(_ header: DeliverHeader, _ batch: UnsafeRawBufferPointer) {
    delivered += UInt64(header.count)
    var iterator = unsafe BatchIterator(batch, time: time)
    var writer = HTTPRecordWriter(.lines, namesReply: true)
    var offset = header.firstOffset
    while let record = try? iterator.next() {
      var line: [UInt8] = []
      writer.append(record, topic: key.topic, offset: offset, delivery: delivery, to: &line)
      ready.append((offset, delivery, line))
      offset += 1
    }
    time = iterator.time
  }

  /// Answers the waiting request.
  private func finishWaiting() {
    guard let now = waiting.take() else { return }
    if let timer = now.timer { loop.cancel(timer) }
    var lines: [UInt8] = []
    for record in ready.prefix(now.count) {
      open[record.offset] = record.delivery
      lines += record.line
    }
    ready.removeFirst(min(now.count, ready.count))
    // A member without open records leaves, so that no record waits for its next request.
    if lines.isEmpty, open.isEmpty { leave() }
    now.answer(.success((lines, isMember: link != nil)))
  }

  // MARK: The link

  func linkStarted() {
    link?.send(
      Hello(
        maximumFrame: DoorLink.maximumFrame, keepalive: 0, name: "member of \(key.group)",
        credentials: key.credentials), stream: 0)
    link?.wake()
  }

  func linkReceived(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) -> Bool {
    guard link != nil else { return true }
    do {
      switch try unsafe native.receive(header, body, at: loop.now.nanoseconds) {
      case .opened: join()
      case .subscribed:
        isJoined = true
        ask()
      case .deliveries(_, let count): delivery = count
      case .deliver(_, let header, let batch): unsafe deliver(header, batch)
      case .answerPing(let token): link?.send(Pong(token: token), stream: 0)
      case .ended: end(HTTPProblem(409, "topic \(key.topic) has ended, and the group is done with it"))
      case .refused(_, let fault): end(HTTPProblem(WireError(fault)))
      case .failed(let fault): end(HTTPProblem(WireError(fault)))
      case .goAway: end(.stopping)
      default: break
      }
    } catch {
      end(HTTPProblem(error))
    }
    return true
  }

  private func join() {
    stream = native.openSubscription(granted: 0, isShared: true)
    guard let stream else { return end(HTTPProblem(429, "the connection has too many streams")) }
    link?.send(
      JoinGroup(topic: key.topic, group: key.group, start: start, settings: settings, grantedThrough: 0),
      stream: stream)
  }

  func linkWritten() {
    if !ready.isEmpty { finishWaiting() }
    link?.wake()
  }

  func linkDrained() {}

  func linkClosed() { end(.disconnected) }

  private func rearm() {
    if let idleTimer { loop.cancel(idleTimer) }
    let deadline = Duration.milliseconds(Int64(settings.deadline))
    idleTimer = loop.schedule(after: max(Self.patience, deadline)) { [weak self] in
      guard let self else { return }
      idleTimer = nil
      if waiting == nil { leave() } else { rearm() }
    }
  }

  private func end(_ problem: HTTPProblem) {
    if let idleTimer = idleTimer.take() { loop.cancel(idleTimer) }
    table.remove(self)
    let waits = waiting.take()
    if let timer = waits?.timer { loop.cancel(timer) }
    waits?.answer(.failure(problem))
    link.take()?.end()
  }
}

/// The group members that HTTP requests have created, by token. Usable from any thread.
final class HTTPGroupMembers: Sendable {
  private static let maximumCount = 100_000
  private let members = Mutex<[String: HTTPGroupMember]>([:])

  /// Returns the member with this token; nil if there is none, or if it belongs to another client, topic or group.
  func member(_ token: String, _ key: HTTPGroupMember.Key) -> HTTPGroupMember? {
    guard let member = members.withLock({ $0[token] }), member.key == key else { return nil }
    return member
  }

  /// Returns false when there are too many.
  func add(_ member: HTTPGroupMember) -> Bool {
    members.withLock { members in
      guard members.count < Self.maximumCount else { return false }
      members[member.token] = member
      return true
    }
  }

  func remove(_ member: HTTPGroupMember) {
    members.withLock { $0[member.token] = nil }
  }
}
