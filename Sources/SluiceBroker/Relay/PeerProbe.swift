import SluiceIO
import SluiceWire

/// One attempt to reach the broker of another node, up to the end of the handshake. Belongs to its loop, and keeps itself until it is over.
///
/// It succeeds only if the broker that answers is the one of that node: an address may be that of another node, or of this one.
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
  /// Nil once it is over.
  private var done: ((String?) -> Void)?

  /// - Parameters:
  ///   - identity: that of the broker in its WELCOME.
  ///   - own: that of this node's broker.
  ///   - done: called once with why the broker can't be reached; nil when it was reached.
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

  /// Connects within a time limit, handshake included.
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
    // A new connection takes a frame as short as HELLO.
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
