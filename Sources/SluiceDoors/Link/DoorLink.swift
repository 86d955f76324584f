import CLinux
import Glibc
import SluiceAccess
import SluiceIO
import SluiceWire

/// What a door does with the frames of the broker. On the link's loop only.
protocol DoorLinkClient: AnyObject {
  /// The broker serves the link: its client may begin.
  func linkStarted()

  /// A frame of the broker, valid during the call only. Returns whether the next one may follow now; see ``DoorLink/resume()``.
  func linkReceived(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) -> Bool

  /// The frames of one write have been handed out.
  func linkWritten()

  /// The broker has read what was sent, after ``DoorLink/isFull`` was true.
  func linkDrained()

  /// The broker has closed its side. Nothing is called after this.
  func linkClosed()

  /// Bytes that wait in the door, and in the client's own stream, in either direction.
  var heldBytes: Int { get }

  /// What keeps bytes that were written from the client, as its own stream knows it.
  var obstacle: StreamObstacle? { get }
}

extension DoorLinkClient {
  /// For a part of the broker's program, whose bytes no client decides on.
  var heldBytes: Int { 0 }
  var obstacle: StreamObstacle? { nil }
}

/// The two ends of a connection in memory: for the broker a stream of a client of the native protocol, for a door the frames of the broker.
///
/// ```
///  Connection ── read ◄── inbox ◄── frames of the door
///             ── write ─► decoder ─► linkReceived
/// ```
///
/// So a client by a door meets all limits, deadlines, permissions and rates of a connection. Bytes that the door doesn't take stay with the
/// connection, and count there. On its loop only.
final class DoorLink: ByteStream {
  /// Bytes that may wait for the broker to read before the door sends no more.
  private static let capacity = 256 << 10
  /// The longest frame that the door takes: of records, as long as any broker has them by default.
  static let maximumFrame: UInt32 = 32 << 20

  let peer: SocketAddress
  /// Whether the client is a part of the broker's program.
  let isInternal: Bool
  var isLocal: Bool { true }
  /// The door sends no more.
  private var hasEnded = false
  private var isClosed = false
  private var isComing = false
  private var wasFull = false
  private let loop: any EventLoop
  /// The door, which has the link, until either side has ended.
  private var client: (any DoorLinkClient)?
  private var handler: (any ByteStreamHandler)?
  // Accesses of each never overlap: a door to which the decoder hands a frame only appends to the inbox. Checking that at run time would cost more than the
  // rest of a record's way through the link.
  @safe @exclusivity(unchecked) private var decoder = FrameDecoder(
    maximumFrame: Int(DoorLink.maximumFrame), openingAt: .client)
  /// A write came short and `streamWritable()` wasn't called since.
  private var waitsForRoom = false
  var readsPaused = false {
    didSet { if !readsPaused, oldValue { wake() } }
  }
  /// The bytes of the door when the broker was last told that they have changed.
  private var toldBytes: UInt32 = 0
  @safe @exclusivity(unchecked) private var inbox: [UInt8] = []

  /// A change of so many bytes is worth a turn of the broker.
  private static let muchHeld = 4 << 10

  /// - Parameters:
  ///   - client: the door; nil for one that is about to ``attach(_:)`` itself.
  ///   - isInternal: whether the client is a part of the broker's program.
  init(
    _ client: (any DoorLinkClient)?, isInternal: Bool = false, peer: SocketAddress, on loop: any EventLoop
  ) {
    self.client = client
    self.isInternal = isInternal
    self.peer = peer
    self.loop = loop
  }

  /// Gives the link its door. Before the broker has the link.
  func attach(_ client: any DoorLinkClient) { self.client = client }

  /// What only some links have, at most for a while: of others it takes one word.
  private struct Particulars {
    var security: StreamSecurity?
    var permissions: (any StreamPermissions)?
    var error: IOError?
  }

  @OutOfLine private var particulars: Particulars? = nil

  private func note(_ change: (inout Particulars) -> Void) {
    var changed = particulars ?? Particulars()
    change(&changed)
    particulars = changed
  }

  /// What protects the client's stream, once its first bytes have come.
  var security: StreamSecurity? { particulars?.security }

  /// What the client may do; nil before WELCOME, and where the broker doesn't ask who its clients are.
  var permissions: (any StreamPermissions)? { particulars?.permissions }

  /// Why the door has ended the connection; nil where the client has closed it.
  private var error: IOError? { particulars?.error }

  // MARK: The door's end

  /// Another object takes the door's part from now on.
  func hand(to client: any DoorLinkClient) {
    if self.client != nil { self.client = client }
  }

  /// Whether nothing waits in either direction.
  var isQuiet: Bool {
    inbox.isEmpty && decoder.pendingBytes == 0 && !waitsForRoom && !readsPaused && !isComing && !wasFull
      && !hasEnded && !isClosed
  }

  /// Returns the memory that is kept for what is to come.
  func releaseUnused() { inbox.releaseUnused() }

  /// Whether the broker reads more slowly than the door sends.
  var isFull: Bool { inbox.count > Self.capacity }

  /// Sends a frame of the client.
  func send(_ frame: some Frame, stream: UInt32) {
    guard !isClosed, !hasEnded else { return }
    frame.encode(stream: stream, into: &inbox)
  }

  /// Sends a PUBLISH, whose acknowledgement is awaited or may come with a later one's.
  func publish(
    _ stream: UInt32, from sequence: UInt64, count: Int, _ batch: UnsafeRawBufferPointer,
    isAwaited: Bool = true
  ) {
    guard !isClosed, !hasEnded else { return }
    let front = FrameHeader.size + PublishHeader.size
    unsafe inbox.append(room: front + batch.count) { end in
      unsafe PublishHeader(firstSequence: sequence, count: UInt32(count)).write(
        at: end, stream: stream, batchLength: batch.count, flags: isAwaited ? 0 : StreamFlag.unhurried)
      unsafe end += front
      unsafe end.write(batch)
    }
  }

  /// The identity that the client's stream has proved, before HELLO is sent.
  func adopt(_ security: StreamSecurity?) {
    if let security { note { $0.security = security } }
  }

  var heldBytes: Int { isClosed ? 0 : inbox.count + decoder.heldBytes + doorBytes }

  var obstacle: StreamObstacle? { client?.obstacle }

  private var doorBytes: Int { client?.heldBytes ?? 0 }

  /// Tells the broker when what the door holds has changed by much. At the end of a turn of the door.
  ///
  /// - Parameter bytes: ``DoorLinkClient/heldBytes`` of the door.
  /// - Returns: whether it has told the broker.
  @discardableResult
  func tellHeldBytes(_ bytes: Int) -> Bool {
    guard !isClosed else { return false }
    guard abs(bytes - Int(toldBytes)) >= Self.muchHeld || bytes == 0 && toldBytes > 0 else { return false }
    toldBytes = UInt32(clamping: bytes)
    handler?.streamHoldsOther()
    return true
  }

  /// Has the broker read what was sent, in a turn of its own.
  func wake() {
    guard !isComing, !isClosed, !inbox.isEmpty || hasEnded else { return }
    isComing = true
    _ = loop.schedule(at: loop.now) { [self] in
      isComing = false
      handOut()
    }
  }

  /// Has the broker read what was sent now. Not while the broker calls the link.
  func handOut() {
    guard !isClosed, !readsPaused, !inbox.isEmpty || hasEnded else { return }
    if inbox.count > Self.capacity { wasFull = true }
    handler?.streamReadable()
  }

  /// The client is gone: the broker reads what was sent, and then the end.
  ///
  /// - Parameter error: why the door has ended the connection, or how the client's stream has failed; nil where the client has closed it.
  func end(_ error: IOError? = nil) {
    guard !hasEnded, !isClosed else { return }
    hasEnded = true
    if let error { note { $0.error = error } }
    client = nil
    wake()
  }

  /// Has the broker write again after ``DoorLinkClient/linkReceived(_:_:)`` has returned false, in a turn of its own.
  func resume() {
    guard waitsForRoom, !isClosed else { return }
    waitsForRoom = false
    _ = loop.schedule(at: loop.now) { [self] in
      guard !isClosed else { return }
      handler?.streamWritable()
    }
  }

  // MARK: The broker's end

  func start(_ handler: any ByteStreamHandler) {
    guard !isClosed else { return }
    self.handler = handler
    client?.linkStarted()
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    guard !isClosed else { return .failed(IOError(action: "read from \(peer)", code: EBADF)) }
    guard !inbox.isEmpty else {
      guard hasEnded else { return .wouldBlock }
      return error.map { .failed($0) } ?? .end
    }
    let count = min(inbox.count, buffer.count)
    unsafe buffer.copyBytes(from: inbox[..<count])
    if count == inbox.count {
      inbox.removeAllKeepingUseful()
    } else {
      inbox.removeFirst(count)
    }
    if wasFull, inbox.isEmpty {
      wasFull = false
      // The broker calls this: the door goes on in a turn of its own.
      _ = loop.schedule(at: loop.now) { [self] in client?.linkDrained() }
    }
    wake()
    return count > 0 ? .bytes(count) : .wouldBlock
  }

  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult {
    guard !isClosed else { return .failed(IOError(action: "write to \(peer)", code: EPIPE)) }
    // What is sent to a client that is gone is dropped.
    guard let client else {
      var count = 0
      for index in vectors.indices { count += unsafe vectors[index].iov_len }
      return .wrote(count)
    }
    guard !waitsForRoom else { return .wrote(0) }
    var taken = 0
    do {
      for index in vectors.indices {
        let chunk = unsafe UnsafeRawBufferPointer(
          start: vectors[index].iov_base, count: vectors[index].iov_len)
        var goesOn = true
        try unsafe decoder.decode(chunk) { header, body in
          goesOn = unsafe client.linkReceived(header, body)
          return goesOn
        }
        taken += decoder.takenBytes
        guard goesOn else {
          waitsForRoom = true
          break
        }
      }
    } catch {
      return .failed(IOError(action: "write to \(peer)", code: EPROTO, reason: error.message))
    }
    client.linkWritten()
    return .wrote(taken)
  }

  func close() {
    guard !isClosed else { return }
    isClosed = true
    inbox = []
    if permissions != nil { note { $0.permissions = nil } }
    let (client, handler) = (client, handler)
    self.client = nil
    self.handler = nil
    client?.linkClosed()
    _ = consume handler
  }

  func abort() { close() }
}

extension DoorLink: PermissionAwareStream {
  func learn(_ permissions: any StreamPermissions) { note { $0.permissions = permissions } }
}

extension Array {
  /// Removes all elements, and keeps the memory for those to come, unless it is much.
  mutating func removeAllKeepingUseful() {
    if capacity * MemoryLayout<Element>.stride <= 131_072 { removeAllInPlace() } else { removeAll() }
  }

  /// Returns the memory if there are no elements: an idle client has no buffers.
  mutating func releaseUnused() {
    if isEmpty, capacity > 0 { self = [] }
  }
}

extension [UInt8] {
  /// Writes as much as the stream takes, and keeps the rest.
  ///
  /// - Returns: whether the stream goes on.
  mutating func write(to stream: any ByteStream) -> Bool {
    guard case .wrote(let count) = unsafe withUnsafeBytes({ unsafe stream.write($0) }) else { return false }
    if count == self.count { removeAllKeepingUseful() } else { removeFirst(count) }
    return true
  }
}
