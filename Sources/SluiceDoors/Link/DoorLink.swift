import CLinux
import Glibc
import SluiceAccess
import SluiceIO
import SluiceWire

/// Processes the broker's frames in a gateway. On the link's loop only.
protocol DoorLinkClient: AnyObject {
  /// The broker serves the link: its client may send.
  func linkStarted()

  /// A frame of the broker, valid during the call only. Returns whether the next one may follow now; see ``DoorLink/resume()``.
  func linkReceived(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) -> Bool

  /// All frames of one write were passed on.
  func linkWritten()

  /// The broker has read the sent bytes, after ``DoorLink/isFull`` was true.
  func linkDrained()

  /// The broker has closed its side. Nothing is called after this.
  func linkClosed()

  /// Bytes that wait in the gateway and in the client's own stream, in both directions.
  var heldBytes: Int { get }

  /// The reason why written bytes don't reach the client, as far as its own stream knows one.
  var obstacle: StreamObstacle? { get }
}

extension DoorLinkClient {
  /// Defaults for parts of the broker's program, whose bytes don't depend on a client.
  var heldBytes: Int { 0 }
  var obstacle: StreamObstacle? { nil }
}

/// Both ends of an in-memory connection: towards the broker the stream of a native client, towards a gateway the broker's frames.
///
/// ```
///  Connection ── read ◄── inbox ◄── frames of the gateway
///             ── write ─► decoder ─► linkReceived
/// ```
///
/// So a gateway's client meets all limits, deadlines, permissions and rates of a connection. Bytes that the gateway doesn't take stay with the connection and
/// count towards its limits. On its loop only.
final class DoorLink: ByteStream {
  /// The gateway stops sending while more bytes than this wait for the broker to read.
  private static let capacity = 256 << 10
  /// The longest frame that the gateway accepts: brokers send no longer frames of records by default.
  static let maximumFrame: UInt32 = 32 << 20

  let peer: SocketAddress
  /// Whether the client is a part of the broker's program.
  let isInternal: Bool
  var isLocal: Bool { true }
  /// The gateway has closed its side.
  private var hasEnded = false
  private var isClosed = false
  private var isComing = false
  private var wasFull = false
  private let loop: any EventLoop
  /// The gateway's end, which retains the link until either side has ended.
  private var client: (any DoorLinkClient)?
  private var handler: (any ByteStreamHandler)?
  // Accesses of each never overlap: a gateway that receives a frame from the decoder only appends to the inbox. A check at run time would cost more than the
  // rest of a record's path through the link.
  @safe @exclusivity(unchecked) private var decoder = FrameDecoder(
    maximumFrame: Int(DoorLink.maximumFrame), openingAt: .client)
  /// A write was incomplete, and `streamWritable()` wasn't called since.
  private var waitsForRoom = false
  var readsPaused = false {
    didSet { if !readsPaused, oldValue { wake() } }
  }
  /// The gateway's held bytes when the broker was last notified of a change.
  private var toldBytes: UInt32 = 0
  @safe @exclusivity(unchecked) private var inbox: [UInt8] = []

  /// The smallest change of held bytes that is worth a turn of the broker.
  private static let muchHeld = 4 << 10

  /// - Parameters:
  ///   - client: the gateway's end; nil if it will ``attach(_:)`` itself.
  ///   - isInternal: whether the client is a part of the broker's program.
  init(
    _ client: (any DoorLinkClient)?, isInternal: Bool = false, peer: SocketAddress, on loop: any EventLoop
  ) {
    self.client = client
    self.isInternal = isInternal
    self.peer = peer
    self.loop = loop
  }

  /// Sets the gateway's end. Only before the broker has the link.
  func attach(_ client: any DoorLinkClient) { self.client = client }

  /// State that only some links have, most of them for a while; the others spend one word on it.
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

  /// The security of the client's stream, known once its first bytes have arrived.
  var security: StreamSecurity? { particulars?.security }

  /// The client's permissions; nil before WELCOME, and if the broker doesn't authenticate clients.
  var permissions: (any StreamPermissions)? { particulars?.permissions }

  /// Why the gateway ended the connection; nil if the client closed it.
  private var error: IOError? { particulars?.error }

  // MARK: The gateway's end

  /// Replaces the gateway's end by another object.
  func hand(to client: any DoorLinkClient) {
    if self.client != nil { self.client = client }
  }

  /// Whether no bytes wait in either direction.
  var isQuiet: Bool {
    inbox.isEmpty && decoder.pendingBytes == 0 && !waitsForRoom && !readsPaused && !isComing && !wasFull
      && !hasEnded && !isClosed
  }

  /// Frees memory that is reserved for further bytes.
  func releaseUnused() { inbox.releaseUnused() }

  /// Whether the broker reads more slowly than the gateway sends.
  var isFull: Bool { inbox.count > Self.capacity }

  /// Sends a frame of the client.
  func send(_ frame: some Frame, stream: UInt32) {
    guard !isClosed, !hasEnded else { return }
    frame.encode(stream: stream, into: &inbox)
  }

  /// Sends a PUBLISH whose acknowledgement is awaited, or may arrive with that of a later one.
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

  /// Adopts the identity that the client's stream has proved, before HELLO is sent.
  func adopt(_ security: StreamSecurity?) {
    if let security { note { $0.security = security } }
  }

  var heldBytes: Int { isClosed ? 0 : inbox.count + decoder.heldBytes + doorBytes }

  var obstacle: StreamObstacle? { client?.obstacle }

  private var doorBytes: Int { client?.heldBytes ?? 0 }

  /// Notifies the broker if the gateway's held bytes have changed by much. Call it at the end of a turn of the gateway.
  ///
  /// - Parameter bytes: ``DoorLinkClient/heldBytes`` of the gateway.
  /// - Returns: whether it notified the broker.
  @discardableResult
  func tellHeldBytes(_ bytes: Int) -> Bool {
    guard !isClosed else { return false }
    guard abs(bytes - Int(toldBytes)) >= Self.muchHeld || bytes == 0 && toldBytes > 0 else { return false }
    toldBytes = UInt32(clamping: bytes)
    handler?.streamHoldsOther()
    return true
  }

  /// Schedules a turn in which the broker reads the sent bytes.
  func wake() {
    guard !isComing, !isClosed, !inbox.isEmpty || hasEnded else { return }
    isComing = true
    _ = loop.schedule(at: loop.now) { [self] in
      isComing = false
      handOut()
    }
  }

  /// Makes the broker read the sent bytes now. Must not be called from within a call of the broker to the link.
  func handOut() {
    guard !isClosed, !readsPaused, !inbox.isEmpty || hasEnded else { return }
    if inbox.count > Self.capacity { wasFull = true }
    handler?.streamReadable()
  }

  /// Ends the gateway's side: the broker reads the sent bytes, and then the end.
  ///
  /// - Parameter error: why the gateway ended the connection, or how the client's stream failed; nil if the client closed it.
  func end(_ error: IOError? = nil) {
    guard !hasEnded, !isClosed else { return }
    hasEnded = true
    if let error { note { $0.error = error } }
    client = nil
    wake()
  }

  /// Schedules a turn in which the broker writes again after ``DoorLinkClient/linkReceived(_:_:)`` returned false.
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
      // The broker calls this, so the gateway continues in a turn of its own.
      _ = loop.schedule(at: loop.now) { [self] in client?.linkDrained() }
    }
    wake()
    return count > 0 ? .bytes(count) : .wouldBlock
  }

  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult {
    guard !isClosed else { return .failed(IOError(action: "write to \(peer)", code: EPIPE)) }
    // Bytes for a client that has disconnected are dropped.
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
  /// Removes all elements, and keeps the memory for further ones unless it is large.
  mutating func removeAllKeepingUseful() {
    if capacity * MemoryLayout<Element>.stride <= 131_072 { removeAllInPlace() } else { removeAll() }
  }

  /// Frees the memory if there are no elements, so that idle clients have no buffers.
  mutating func releaseUnused() {
    if isEmpty, capacity > 0 { self = [] }
  }
}

extension [UInt8] {
  /// Writes as much as the stream takes, and keeps the rest.
  ///
  /// - Returns: false if the stream has failed.
  mutating func write(to stream: any ByteStream) -> Bool {
    guard case .wrote(let count) = unsafe withUnsafeBytes({ unsafe stream.write($0) }) else { return false }
    if count == self.count { removeAllKeepingUseful() } else { removeFirst(count) }
    return true
  }
}
