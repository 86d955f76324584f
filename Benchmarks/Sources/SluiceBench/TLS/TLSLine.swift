import Dispatch
import Glibc
import SluiceIO
import SluiceTLS
import Synchronization

/// A server on one loop and clients on another, over loopback, with TLS and without.
final class TLSLine: Sendable {
  private let loops: LoopGroup
  private let network: TLSNetwork
  private let client: TLSClient
  private let listeners: [any Listener]
  private let received = ByteCount()

  /// - Parameter directory: a directory made by `scripts/certs.sh`.
  init(certificates directory: String) throws {
    loops = try LoopGroup.threads(count: 2, name: "tls")
    var options = TLSClientOptions()
    options.authorities = "\(directory)/authority.pem"
    client = try TLSClient(options)
    network = TLSNetwork(
      over: SocketNetwork(),
      server: try TLSServer(
        TLSServerOptions(certificate: "\(directory)/server.pem", key: "\(directory)/server.key")),
      client: client)
    let group = LoopGroup([loops.loops[0]])
    listeners = try [SocketAddress.host("127.0.0.1", port: 0), .tls("127.0.0.1", port: 0)].map {
      [network, received] address in
      try network.listen(at: address, group: group) { stream, _ in
        let sink = Sink(stream, received)
        stream.start(sink)
        // With TLS, a stream accepts bytes only after the handshake.
        sink.streamWritable()
      }
    }
  }

  func stop() {
    for listener in listeners { listener.close() }
    loops.stopThreads()
  }

  /// Sends that many bytes on a new connection, in vectors of `pieces` bytes, and returns when they have been read.
  func send(_ bytes: Int, pieces: Int, secure: Bool) throws {
    let loop = loops.loops[1]
    let target = received.value + bytes
    let done = DispatchSemaphore(value: 0)
    let failure = Mutex<IOError?>(nil)
    received.wait(for: target, done)
    loop.execute { [network, listeners] in
      _ = network.connect(to: listeners[secure ? 1 : 0].address, on: loop) { result in
        switch result {
        case .success(let stream): stream.start(Source(stream, bytes: bytes, pieces: pieces))
        case .failure(let error):
          failure.withLock { $0 = error }
          done.signal()
        }
      }
    }
    done.wait()
    if let error = failure.withLock({ $0 }) { throw error }
  }

  /// Connects that many times, one after another.
  func shakeHands(_ count: Int, resumed: Bool) throws {
    let loop = loops.loops[1]
    let done = DispatchSemaphore(value: 0)
    let failure = Mutex<IOError?>(nil)
    @Sendable func next(_ left: Int) {
      guard left > 0 else {
        done.signal()
        return
      }
      if !resumed { client.forgetSessions() }
      _ = network.connect(to: listeners[1].address, on: loop) { result in
        switch result {
        case .success(let stream):
          stream.start(Visitor(stream) { next(left - 1) })
        case .failure(let error):
          failure.withLock { $0 = error }
          done.signal()
        }
      }
    }
    loop.execute { next(count) }
    done.wait()
    if let error = failure.withLock({ $0 }) { throw error }
  }
}

/// The number of bytes that all sinks have read, and the callers that wait for a number.
private final class ByteCount: Sendable {
  private let state = Mutex((count: 0, target: Int.max, gate: DispatchSemaphore?.none))

  var value: Int { state.withLock { $0.count } }

  func wait(for target: Int, _ gate: DispatchSemaphore) {
    state.withLock { ($0.target, $0.gate) = (target, gate) }
  }

  func add(_ count: Int) {
    let gate = state.withLock { state -> DispatchSemaphore? in
      state.count += count
      return state.count >= state.target ? state.gate.take() : nil
    }
    gate?.signal()
  }
}

/// Sends a greeting, reads and counts.
private final class Sink: ByteStreamHandler {
  private let stream: any ByteStream
  private let count: ByteCount
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 512 << 10, alignment: 4096)

  init(_ stream: any ByteStream, _ count: ByteCount) {
    self.stream = stream
    self.count = count
  }

  deinit { buffer.deallocate() }

  func streamReadable() {
    switch stream.read(into: buffer) {
    case .bytes(let read): count.add(read)
    case .wouldBlock: break
    case .end, .failed: stream.close()
    }
  }

  /// Sends a byte, which arrives after the data with which the peer can resume its session.
  func streamWritable() {
    var greeting: UInt8 = 1
    withUnsafeMutableBytes(of: &greeting) { bytes in
      var vector = iovec(iov_base: bytes.baseAddress, iov_len: 1)
      _ = withUnsafePointer(to: &vector) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
    }
  }

  func streamFailed(_ error: IOError) {}
}

/// Writes as much as there is room for, until all bytes are written.
private final class Source: ByteStreamHandler {
  private let stream: any ByteStream
  private var left: Int
  private let block: UnsafeMutableRawBufferPointer
  private let vectors: UnsafeMutableBufferPointer<iovec>
  /// As much as a broker gathers for one connection.
  private static let writeSize = 256 << 10

  init(_ stream: any ByteStream, bytes: Int, pieces: Int) {
    self.stream = stream
    left = bytes
    block = .allocate(byteCount: Self.writeSize, alignment: 4096)
    memset(block.baseAddress!, 7, block.count)
    let count = (Self.writeSize + pieces - 1) / pieces
    vectors = .allocate(capacity: count)
    for index in 0..<count {
      let start = index * pieces
      vectors[index] = iovec(
        iov_base: block.baseAddress! + start, iov_len: min(pieces, Self.writeSize - start))
    }
    streamWritable()
  }

  deinit {
    block.deallocate()
    vectors.deallocate()
  }

  func streamReadable() {
    var greeting: UInt8 = 0
    _ = withUnsafeMutableBytes(of: &greeting) { stream.read(into: $0) }
  }

  func streamWritable() {
    while left > 0 {
      // All bytes are equal, so a short write may be continued at any position.
      var last = iovec(iov_base: block.baseAddress!, iov_len: min(left, Self.writeSize))
      let result =
        left >= Self.writeSize
        ? stream.write(UnsafeBufferPointer(vectors))
        : withUnsafePointer(to: &last) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
      guard case .wrote(let count) = result else { return stream.close() }
      left -= count
      if left > 0, count < Self.writeSize { return }
    }
    stream.close()
  }

  func streamFailed(_ error: IOError) {}
}

/// Closes the connection after the greeting, once it has received the data that resumes the session.
private final class Visitor: ByteStreamHandler {
  private let stream: any ByteStream
  private let done: () -> Void

  init(_ stream: any ByteStream, _ done: @escaping () -> Void) {
    self.stream = stream
    self.done = done
  }

  func streamReadable() {
    var greeting: UInt8 = 0
    guard withUnsafeMutableBytes(of: &greeting, { stream.read(into: $0) }) != .wouldBlock else { return }
    stream.close()
    done()
  }

  func streamWritable() {}
  func streamFailed(_ error: IOError) { done() }
}
