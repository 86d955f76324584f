import CLinux
import Glibc

/// One thread, one epoll set, all publishers and subscribers of a run.
///
/// All connections read into one buffer that stays in the second-level cache, and records are checked there. Publishers send whole batches, at most a window
/// ahead of the slowest reading subscriber, so no more records than that are in flight.
final class LoadLoop<Driver: LoadDriver, Sink: CheckingSink> {
  let driver: Driver
  let target: LoadTarget
  private(set) var publishers: [PublisherConnection<Driver.Publisher>] = []
  private(set) var subscribers: [SubscriberConnection<Driver.Subscriber, Sink>] = []
  private let publisherCount: Int
  private let poller: Poller
  private let inbox: PinnedBuffer

  /// Numbers of registrations: subscribers count from 0, publishers have this bit set.
  private static var publisherBit: UInt64 { 1 << 32 }

  init(_ driver: Driver, _ target: LoadTarget, publishers: Int) throws {
    self.driver = driver
    self.target = target
    publisherCount = publishers
    poller = try Poller()
    inbox = PinnedBuffer(count: max(1 << 18, 4 * (target.size + 1024)))
  }

  /// Prepares the server in the options. The sockets are open until `finish()`.
  convenience init(_ options: LoadOptions) throws {
    let driver = Driver(target: options.target)
    try driver.prepare()
    try self.init(driver, options.target, publishers: options.publishers)
  }

  func openPublishers() throws {
    for index in 0..<publisherCount {
      let connection = PublisherConnection(try driver.openPublisher(index))
      poller.add(
        connection.socket.descriptor, interest: Poller.readable, number: Self.publisherBit | UInt64(index))
      publishers.append(connection)
    }
  }

  func openSubscriber(reads: Bool = true) throws {
    let connection = SubscriberConnection<Driver.Subscriber, Sink>(
      try Driver(target: target.target(ofSubscriber: subscribers.count)).openSubscriber(),
      publishers: publisherCount, reads: reads)
    if reads {
      poller.add(connection.socket.descriptor, interest: Poller.readable, number: UInt64(subscribers.count))
    }
    subscribers.append(connection)
    if connection.carry.count > 0 { try process(connection, received: 0) }
  }

  func closeAll() {
    for publisher in publishers { publisher.socket.close() }
    for subscriber in subscribers { subscriber.socket.close() }
  }

  /// Closes all sockets, and removes the topic.
  func finish() throws {
    closeAll()
    try driver.cleanUp()
  }

  // MARK: - Progress

  /// The total number of records that have arrived at reading subscribers.
  var delivered: UInt64 {
    subscribers.reduce(0) { $1.reads ? $0 + $1.sink.check.received : $0 }
  }

  /// The progress of the run: the number of records that have arrived or, without subscribers, that the server has confirmed.
  var progress: UInt64 {
    subscribers.isEmpty ? acknowledged ?? 0 : delivered
  }

  var published: UInt64 {
    publishers.reduce(0) { $0 + $1.sent }
  }

  /// Records that the server has confirmed; nil if its protocol has no confirmations.
  var acknowledged: UInt64? {
    var sum: UInt64 = 0
    for publisher in publishers {
      guard let count = publisher.codec.acknowledged else { return nil }
      sum += count
    }
    return sum
  }

  /// The slowest reading subscriber's position in the records of a publisher; without subscribers, the server's.
  private func position(of publisher: Int) -> UInt64 {
    var slowest = UInt64.max
    for subscriber in subscribers where subscriber.reads {
      slowest = min(slowest, subscriber.sink.check.position(of: publisher))
    }
    return slowest == .max ? publishers[publisher].codec.acknowledged ?? 0 : slowest
  }

  // MARK: - Turns

  /// Sends as much as the window allows, then handles incoming bytes, waiting at most `milliseconds` for them.
  ///
  /// - Parameters:
  ///   - window: records that a publisher may be ahead of the slowest subscriber.
  ///   - limit: the total number of records that each publisher sends.
  func turn(window: UInt64, limit: UInt64, milliseconds: Int32 = 100) throws {
    var more = false
    for index in publishers.indices {
      more = try publish(index, window: window, limit: limit) || more
    }
    try handleEvents(milliseconds: more ? 0 : milliseconds)
  }

  /// Takes turns until that many records have arrived, or the run makes no progress.
  func deliver(_ owed: UInt64, _ watch: inout ProgressWatch, _ turn: () throws -> Void) throws {
    while progress < owed, watch.goesOn(progress, now: monotonicNanoseconds()) { try turn() }
  }

  /// Waits, without publishing more, until all published records have arrived at that many subscribers (0: until they are confirmed), or the run makes no
  /// progress.
  func drain(to subscribers: Int, _ watch: inout ProgressWatch) throws {
    try deliver(published * UInt64(max(subscribers, 1)), &watch) { try turn(window: 0, limit: 0) }
  }

  /// Publishes that many records and waits until the server has confirmed them.
  ///
  /// - Parameter purpose: the purpose of the records, for error messages.
  func publish(_ records: UInt64, window: UInt64, patience: Double, _ purpose: String) throws {
    var watch = ProgressWatch(patience: patience)
    while let done = acknowledged, done < records, watch.goesOn(done, now: monotonicNanoseconds()) {
      try turn(window: window, limit: records)
    }
    guard acknowledged == records else { throw BenchError("\(purpose) stood still") }
  }

  /// Sends up to four batches; returns whether the window allows more.
  private func publish(_ index: Int, window: UInt64, limit: UInt64) throws -> Bool {
    let publisher = publishers[index]
    if publisher.isBlocked { return false }
    try Self.send(&publisher.codec.replies, on: publisher.socket)
    let end = min(position(of: index) + window, limit, publisher.codec.granted)
    for _ in 0..<4 {
      guard end > publisher.sent else { return false }
      let room = end - publisher.sent
      // Whole batches, except at the end of the run or of the server's grant.
      guard room >= UInt64(target.batch) || end == limit || end == publisher.codec.granted else {
        return false
      }
      try publisher.send(Int(min(room, UInt64(target.batch))), stamp: 0)
      if publisher.isBlocked {
        watchRoom(publisher, index, true)
        return false
      }
    }
    return true
  }

  /// Sends `count` records at once, regardless of the window; for publishing at a given rate.
  func publishNow(_ count: Int, stamp: UInt64) throws {
    let publisher = publishers[0]
    if publisher.isBlocked { try publisher.flush() }
    guard !publisher.isBlocked else { return }
    try Self.send(&publisher.codec.replies, on: publisher.socket)
    try publisher.send(count, stamp: stamp)
    if publisher.isBlocked { watchRoom(publisher, 0, true) }
  }

  /// Adds a file whose events call `wake` in `handleEvents`.
  func watch(_ descriptor: Int32) {
    poller.add(descriptor, interest: Poller.readable, number: .max)
  }

  /// Handles incoming bytes. Returns whether a watched file is ready.
  @discardableResult
  func handleEvents(milliseconds: Int32) throws -> Bool {
    var woken = false
    for index in 0..<poller.wait(milliseconds: milliseconds) {
      let (number, ready) = poller.event(index)
      if number == .max {
        woken = true
      } else if number & Self.publisherBit != 0 {
        try handle(publisher: Int(number & 0xffff_ffff), ready)
      } else {
        try read(subscribers[Int(number)])
      }
    }
    return woken
  }

  private func handle(publisher index: Int, _ ready: UInt32) throws {
    let publisher = publishers[index]
    if ready & Poller.writable != 0 {
      try publisher.flush()
      if !publisher.isBlocked { watchRoom(publisher, index, false) }
    }
    guard ready & ~Poller.writable != 0 else { return }
    let carried = publisher.carry.unload(into: inbox.base)
    let count = try receive(publisher.socket, after: carried, side: "publisher")
    let bytes = UnsafeRawBufferPointer(start: inbox.base, count: carried + count)
    let used = try publisher.codec.receive(bytes)
    publisher.carry.load(UnsafeRawBufferPointer(rebasing: bytes[used...]))
  }

  @inline(__always)
  private func read(_ subscriber: SubscriberConnection<Driver.Subscriber, Sink>) throws {
    let carried = subscriber.carry.unload(into: inbox.base)
    let count = try receive(subscriber.socket, after: carried, side: "subscriber")
    try process(subscriber, in: carried + count)
  }

  private func process(_ subscriber: SubscriberConnection<Driver.Subscriber, Sink>, received: Int) throws {
    try process(subscriber, in: subscriber.carry.unload(into: inbox.base) + received)
  }

  @inline(__always)
  private func process(_ subscriber: SubscriberConnection<Driver.Subscriber, Sink>, in count: Int) throws {
    guard count > 0 else { return }
    let bytes = UnsafeRawBufferPointer(start: inbox.base, count: count)
    // A copy, so that the loop over the records works in registers instead of the object.
    var sink = subscriber.sink
    sink.bytesArrived()
    let used = try subscriber.codec.receive(bytes, into: &sink)
    sink.check.flush()
    subscriber.sink = sink
    subscriber.carry.load(UnsafeRawBufferPointer(rebasing: bytes[used...]))
    try Self.send(&subscriber.codec.replies, on: subscriber.socket)
  }

  private func receive(_ socket: Socket, after carried: Int, side: String) throws -> Int {
    let count = recv(socket.descriptor, inbox.base + carried, inbox.count - carried, 0)
    if count > 0 { return count }
    if count < 0, errno == EAGAIN || errno == EINTR { return 0 }
    throw BenchError(
      "a \(side)'s connection was \(count == 0 ? "closed by the server" : "lost: \(errorText())")")
  }

  private static func send(_ replies: inout Replies, on socket: Socket) throws {
    if replies.isEmpty { return }
    let count = replies.bytes.withUnsafeBytes {
      Glibc.send(socket.descriptor, $0.baseAddress!, $0.count, Int32(MSG_NOSIGNAL))
    }
    if count >= 0 { return replies.drop(count) }
    if errno == EAGAIN || errno == EINTR { return }
    throw BenchError("a connection was lost: \(errorText())")
  }

  private func watchRoom(_ publisher: PublisherConnection<Driver.Publisher>, _ index: Int, _ watch: Bool) {
    let interest = watch ? Poller.readable | Poller.writable : Poller.readable
    poller.modify(publisher.socket.descriptor, interest: interest, number: Self.publisherBit | UInt64(index))
  }
}
