import Glibc
import SluiceIO
import Synchronization
import Testing

/// One side of a connection, driven by a test: collects arriving bytes and sends the test's.
///
/// Unchecked: `log` has a lock; the rest is used on the peer's loop.
final class Peer: ByteStreamHandler, @unchecked Sendable {
  struct Log {
    var received: [UInt8] = []
    var ended = false
    var failure: IOError?
    var readableCalls = 0
    var writableCalls = 0
    var shortWrites = 0
    var callsAfterTheEnd = 0
    var unsent = 0
  }

  let loop: any EventLoop
  let stream: any ByteStream
  private let log = Mutex(Log())
  private var outgoing: [UInt8] = []
  private var sent = 0
  private var isOver = false

  /// The most bytes to read in one call of `streamReadable()`.
  var readSize = 65_536
  /// Whether to read arriving bytes.
  var reads = true
  /// Whether to close when the peer has ended.
  var closesAtEnd = false
  /// Whether to send received bytes back.
  var echoes = false
  /// Called at each `streamReadable()` instead of anything else.
  var onReadable: (() -> Void)?

  init(stream: any ByteStream, loop: any EventLoop) {
    self.stream = stream
    self.loop = loop
  }

  var seen: Log { log.withLock { $0 } }
  var received: [UInt8] { seen.received }

  // MARK: On the loop

  func send(_ bytes: [UInt8]) {
    outgoing += bytes
    flush()
  }

  func close() {
    isOver = true
    stream.close()
  }

  func abort() {
    isOver = true
    stream.abort()
  }

  func flush() {
    guard sent < outgoing.count else { return }
    let result = outgoing.withUnsafeBytes { bytes in
      let rest = UnsafeMutableRawPointer(mutating: bytes.baseAddress! + sent)
      var vector = iovec(iov_base: rest, iov_len: bytes.count - sent)
      return withUnsafePointer(to: &vector) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
    }
    switch result {
    case .wrote(let count):
      sent += count
      let rest = outgoing.count - sent
      if rest == 0 {
        outgoing = []
        sent = 0
      }
      log.withLock { log in
        log.unsent = rest
        if rest > 0 { log.shortWrites += 1 }
      }
    case .failed(let error):
      failed(error)
    }
  }

  func streamReadable() {
    count { $0.readableCalls += 1 }
    if let onReadable { return onReadable() }
    guard reads else { return }
    let (result, bytes) = read(readSize)
    switch result {
    case .bytes:
      log.withLock { $0.received += bytes }
      if echoes { send(bytes) }
    case .wouldBlock: break
    case .end:
      log.withLock { $0.ended = true }
      if closesAtEnd { close() }
    case .failed(let error): failed(error)
    }
  }

  func read(_ size: Int) -> (ReadResult, [UInt8]) {
    var result = ReadResult.wouldBlock
    let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      result = stream.read(into: UnsafeMutableRawBufferPointer(buffer))
      if case .bytes(let read) = result { count = read }
    }
    return (result, bytes)
  }

  func streamWritable() {
    count { $0.writableCalls += 1 }
    flush()
  }

  func streamFailed(_ error: IOError) {
    count { _ in }
    failed(error)
  }

  private func failed(_ error: IOError) {
    isOver = true
    log.withLock { $0.failure = error }
    stream.close()
  }

  private func count(_ change: (inout Log) -> Void) {
    log.withLock { log in
      change(&log)
      if isOver { log.callsAfterTheEnd += 1 }
    }
  }
}

/// The two sides of a connection, and the listener behind it.
struct Pair {
  var client: Peer
  var server: Peer
  var listener: any Listener
}

extension Stage {
  /// Opens a connection from the first loop; the accepted side belongs to whichever loop it was placed on.
  ///
  /// - Parameter prepare: called with each side on its loop, before its stream is started.
  func connect(_ prepare: @escaping @Sendable (Peer, _ isServer: Bool) -> Void = { _, _ in }) throws -> Pair {
    let accepted = Shared<Peer?>(nil)
    let listener = try network.listen(at: freshAddress(), group: LoopGroup(loops)) { stream, loop in
      let peer = Peer(stream: stream, loop: loop)
      prepare(peer, true)
      accepted.set(peer)
      stream.start(peer)
    }
    let client = try open(to: listener.address) { prepare($0, false) }.get()
    try #require(wait { accepted.value != nil })
    return Pair(client: client, server: accepted.value!, listener: listener)
  }

  /// Opens a connection from the first loop to `address`.
  func open(
    to address: SocketAddress, _ prepare: @escaping @Sendable (Peer) -> Void = { _ in }
  ) throws -> Result<Peer, IOError> {
    let opened = Shared<Result<Peer, IOError>?>(nil)
    let network = network
    let loop = loops[0]
    run(on: loop) {
      _ = network.connect(to: address, on: loop) { result in
        let peer = result.map { stream in
          let peer = Peer(stream: stream, loop: loop)
          prepare(peer)
          stream.start(peer)
          return peer
        }
        opened.set(peer)
      }
    }
    try #require(wait { opened.value != nil })
    return opened.value!
  }

  /// Runs `body` on the peer's loop.
  func with<Result: Sendable>(_ peer: Peer, _ body: @escaping @Sendable (Peer) -> Result) -> Result {
    run(on: peer.loop) { body(peer) }
  }
}

/// Bytes that repeat only after a prime number of them, so that a loss or a swap shows.
func pattern(_ count: Int, from start: Int = 0) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
    while filled < count {
      let first = (start + filled) % patternBlock.count
      let length = min(count - filled, patternBlock.count - first)
      let target = UnsafeMutableBufferPointer(rebasing: buffer[filled..<filled + length])
      _ = target.initialize(fromContentsOf: patternBlock[first..<first + length])
      filled += length
    }
  }
}

private let patternBlock = (0..<65_521).map { UInt8(truncatingIfNeeded: $0 ^ ($0 >> 8)) }

/// Checks that two long runs of bytes are the same. (`#expect(left == right)` would look for the smallest difference between
/// them, which takes for ever.)
func expectSame(_ bytes: [UInt8], _ expected: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) {
  let isSame = bytes == expected
  #expect(isSame, "\(bytes.count) bytes, \(expected.count) expected", sourceLocation: sourceLocation)
}
