import Glibc
import SluiceIO
import SluiceTLS
import SluiceWire

/// Finds out whether a broker answers at an address.
///
/// Sends HELLO with a version that doesn't exist. Every broker refuses it, before it checks credentials or stores any state, and only a broker answers with a
/// frame of the protocol. The probe sends no credentials, so it needn't verify the certificate of a broker with TLS. It tries TLS if the answer is a TLS alert.
///
/// On the loop only, which retains it until it is done.
@safe
final class BrokerProbe: ByteStreamHandler {
  private let loop: any EventLoop
  private let network: any Network
  private let tls: TLSClientOptions
  private let timeout: Duration
  private let completion: (_ failure: String?) -> Void
  private var address: SocketAddress
  private var attempt: (any ConnectionAttempt)?
  private var stream: (any ByteStream)?
  private var timer: TimerToken?
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 16)
  private var decoder = FrameDecoder(maximumFrame: Limits.handshakeFrame, openingAt: .client)
  private var answersLikeTLS = false
  private var answersLikeHTTP = false
  private var isDone = false

  /// - Parameters:
  ///   - network: of sockets.
  ///   - tls: the client's certificate, if it has one.
  ///   - timeout: how long the answer may take.
  ///   - completion: called once, with nil if a broker has answered, otherwise with the reason.
  init(
    _ address: SocketAddress, over network: any Network, _ tls: TLSClientOptions, on loop: any EventLoop,
    timeout: Duration, completion: @escaping (_ failure: String?) -> Void
  ) {
    self.address = address
    self.network = network
    self.tls = tls
    self.loop = loop
    self.timeout = timeout
    self.completion = completion
  }

  deinit {
    unsafe buffer.deallocate()
  }

  func start() {
    timer = loop.schedule(after: timeout) { [self] in finish("\(address) didn't answer within \(timeout)") }
    connect()
  }

  private func connect() {
    let network: any Network
    do {
      network = try address.hasTLS ? secured : self.network
    } catch {
      return finish("TLS can't be set up: \(error)")
    }
    attempt = network.connect(to: address, on: loop) { [self] result in
      attempt = nil
      switch result {
      case .success(let stream): connected(stream)
      case .failure(let error): streamFailed(error)
      }
    }
  }

  private var secured: any Network {
    get throws(TLSSetupError) {
      var options = tls
      options.authorities = nil
      options.verification = .disabledInsecurely
      return TLSNetwork(over: network, client: try TLSClient(options))
    }
  }

  private func connected(_ stream: any ByteStream) {
    self.stream = stream
    stream.start(self)
    let hello = Hello(
      versions: .max ... .max, maximumFrame: UInt32(Limits.smallestFrame), keepalive: 0, name: "")
    // A new connection accepts that many bytes at once.
    unsafe hello.encoded(stream: 0).withUnsafeBytes { bytes in
      var vector = unsafe iovec(
        iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress!), iov_len: bytes.count)
      unsafe withUnsafePointer(to: &vector) {
        _ = unsafe stream.write(UnsafeBufferPointer(start: $0, count: 1))
      }
    }
  }

  // MARK: The answer

  func streamReadable() {
    guard let stream else { return }
    switch unsafe stream.read(into: buffer) {
    case .wouldBlock: break
    case .bytes(let count): take(count)
    case .end: notABroker()
    case .failed(let error): streamFailed(error)
    }
  }

  func streamWritable() {}

  func streamFailed(_ error: IOError) {
    switch error.code {
    // A broker that requires certificates has refused the client's.
    case _ where error.isCertificateRefusal: finish(nil)
    case _ where answersLikeTLS && !address.hasTLS: notABroker()
    case ECONNREFUSED, ENOENT:
      finish("nothing listens at \(address); check that the broker runs, and its address")
    default: finish("\(error)")
    }
  }

  private func take(_ count: Int) {
    // A TLS alert, which a broker with TLS sends to a client without TLS.
    if count >= 3, unsafe buffer[0] == 0x15, unsafe buffer[1] == 3 { answersLikeTLS = true }
    if unsafe buffer[..<count].starts(with: "HTTP/".utf8) { answersLikeHTTP = true }
    var isAnswered = false
    do {
      try unsafe decoder.decode(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { _, _ in
        isAnswered = true
        return false
      }
    } catch {
      return notABroker()
    }
    if isAnswered { finish(nil) }
  }

  /// The answer isn't a broker's: tries TLS if it looks like TLS, fails otherwise.
  private func notABroker() {
    guard answersLikeTLS, case .host(let host, let port) = address else {
      return finish(
        answersLikeHTTP
          ? "\(address) answers with HTTP; use the broker's address for its native protocol"
          : "\(address) answers, but isn't a Sluice broker; check the address")
    }
    stream?.abort()
    stream = nil
    decoder = FrameDecoder(maximumFrame: Limits.handshakeFrame, openingAt: .client)
    address = .tls(host, port: port)
    connect()
  }

  private func finish(_ failure: String?) {
    guard !isDone else { return }
    isDone = true
    if let timer { loop.cancel(timer) }
    attempt?.abandon()
    attempt = nil
    stream?.close()
    stream = nil
    completion(failure)
  }
}
