import CLinux
import Glibc

/// One thread, one epoll set, all publishers and subscribers of a run.
///
/// All connections read into one buffer that stays in the second-level cache, and records are checked there. Publishers send whole
/// batches, and only as far as every subscriber that reads has come, plus a window: nothing is ever owed more than that.
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

  /// Prepares the server that the options name. The sockets are open until `finish()`.
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

  /// Records that arrived at subscribers that read, in all.
  var delivered: UInt64 {
    subscribers.reduce(0) { $1.reads ? $0 + $1.sink.check.received : $0 }
  }

  /// How far the run is: records that have arrived, or that the server has confirmed where there are no subscribers.
  var progress: UInt64 {
    subscribers.isEmpty ? acknowledged ?? 0 : delivered
  }

  var published: UInt64 {
    publishers.reduce(0) { $0 + $1.sent }
  }

  /// Records that the server has confirmed; nil where its protocol has no confirmations.
  var acknowledged: UInt64? {
    var sum: UInt64 = 0
    for publisher in publishers {
      guard let count = publisher.codec.acknowledged else { return nil }
      sum += count
    }
    return sum
  }

  /// How far the slowest reading subscriber is with the records of a publisher; without subscribers, how far the server is.
  private func position(of publisher: Int) -> UInt64 {
    var slowest = UInt64.max
    for subscriber in subscribers where subscriber.reads {
      slowest = min(slowest, subscriber.sink.check.position(of: publisher))
    }
    return slowest == .max ? publishers[publisher].codec.acknowledged ?? 0 : slowest
  }

  // MARK: - Turns

  /// Sends what the window allows, then handles what has arrived, waiting at most `milliseconds` for it.
  ///
  /// - Parameters:
  ///   - window: records that a publisher may be ahead of the slowest subscriber.
  ///   - limit: records that each publisher sends in all.
  func turn(window: UInt64, limit: UInt64, milliseconds: Int32 = 100) throws {
    var more = false
    for index in publishers.indices {
      more = try publish(index, window: window, limit: limit) || more
    }
    try handleEvents(milliseconds: more ? 0 : milliseconds)
  }

  /// Takes turns until so many records have arrived, or the run stands still.
  func deliver(_ owed: UInt64, _ watch: inout ProgressWatch, _ turn: () throws -> Void) throws {
    while progress < owed, watch.goesOn(progress, now: monotonicNanoseconds()) { try turn() }
  }

  /// Waits, without publishing more, until all that was published has arrived at so many subscribers (none: until it is confirmed), or the run stands still.
  func drain(to subscribers: Int, _ watch: inout ProgressWatch) throws {
    try deliver(published * UInt64(max(subscribers, 1)), &watch) { try turn(window: 0, limit: 0) }
  }

  /// Publishes so many records and waits until the server has confirmed them.
  ///
  /// - Parameter purpose: what the records are for, as an error calls it.
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
      // Whole batches, but for the end of the run or of the server's grant.
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

  /// Sends `count` records at once, whatever the window; for publishing at a given rate.
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

  /// Handles what has arrived. Returns whether a watched file is ready.
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
    // A copy, so that the loop over the records works in registers and not through the object.
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
