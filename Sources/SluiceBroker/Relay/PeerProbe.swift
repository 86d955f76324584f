import SluiceIO
import SluiceWire

/// One attempt to reach the broker of another node, until the end of the handshake. Belongs to its loop, and retains itself until it has ended.
///
/// It succeeds only if that node's own broker answers: the address may lead to another node, or to this one.
final class PeerProbe: ByteStreamHandler {
  private let identity: UInt64
  private let own: UInt64
  private let handshake: ClientHandshake
  private let loop: any EventLoop
  private var decoder: FrameDecoder
  private var attempt: (any ConnectionAttempt)?
  private var stream: (any ByteStream)?
  private var timer: TimerToken?
  private var buffer = [UInt8](repeating: 0, count: 8 << 10)
  /// Nil after the end.
  private var done: ((String?) -> Void)?

  /// - Parameters:
  ///   - identity: the expected identity in WELCOME.
  ///   - own: the identity of this node's broker.
  ///   - done: called once with the reason why the broker can't be reached; nil when it was reached.
  init(
    of identity: UInt64, own: UInt64, hello: Hello, on loop: any EventLoop,
    _ done: @escaping (String?) -> Void
  ) {
    self.identity = identity
    self.own = own
    self.loop = loop
    self.done = done
    handshake = ClientHandshake(hello: hello)
    decoder = FrameDecoder(maximumFrame: Int(hello.maximumFrame), openingAt: .client)
  }

  /// Connects within a time limit that includes the handshake.
  func connect(to address: SocketAddress, over network: any Network, within limit: Duration) {
    timer = loop.schedule(after: limit) { [self] in end("it doesn't answer within \(limit)") }
    attempt = network.connect(to: address, on: loop) { [self] result in
      attempt = nil
      guard done != nil else {
        if case .success(let stream) = result { stream.abort() }
        return
      }
      switch result {
      case .failure(let error): end(error.description)
      case .success(let stream):
        self.stream = stream
        stream.start(self)
        greet(over: stream)
      }
    }
  }

  private func greet(over stream: any ByteStream) {
    let bytes = handshake.hello.encoded(stream: 0)
    let result = unsafe bytes.withUnsafeBytes { unsafe stream.write($0) }
    // A new connection accepts a frame as short as HELLO at once.
    switch result {
    case .wrote(bytes.count): break
    case .failed(let error): end(error.description)
    case .wrote: end("it takes no bytes")
    }
  }

  func streamReadable() {
    guard let stream else { return }
    let result = unsafe buffer.withUnsafeMutableBytes { unsafe stream.read(into: $0) }
    switch result {
    case .wouldBlock: break
    case .end: end("it has closed the connection")
    case .failed(let error): end(error.description)
    case .bytes(let count):
      unsafe buffer.withUnsafeBytes { unsafe take(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }
  }

  private func take(_ bytes: UnsafeRawBufferPointer) {
    do throws(WireError) {
      try unsafe decoder.decode(bytes) { header, body throws(WireError) in
        answered(try unsafe handshake.receive(header, body))
        return false
      }
    } catch {
      end(error.message)
    }
  }

  private func answered(_ welcome: Welcome) {
    switch welcome.broker {
    case identity: end(nil)
    case own: end("this node itself answers there")
    default: end("another broker answers there")
    }
  }

  func streamWritable() {}

  func streamFailed(_ error: IOError) { end(error.description) }

  private func end(_ problem: String?) {
    guard let done = done.take() else { return }
    loop.cancel(&timer)
    attempt?.abandon()
    attempt = nil
    stream?.close()
    stream = nil
    done(problem)
  }
}
