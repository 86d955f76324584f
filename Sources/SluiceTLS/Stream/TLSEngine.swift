import COpenSSL
import Glibc
import SluiceIO

/// OpenSSL between plaintext and a stream of ciphertext: reads from the stream into OpenSSL's own buffer, and gathers what OpenSSL writes.
///
/// On the loop only. Nothing here calls the stream's handler.
@safe
final class TLSEngine {
  /// The result of a call.
  enum Outcome {
    case done(Int)
    /// More of the peer's bytes must come first.
    case needsInput
    /// The peer has said that it sends no more.
    case ended
    case failed(TLSFault)
  }

  /// With so much ciphertext waiting for the transport, the peer isn't read, so that it can't have us answer without end. It is
  /// more than a write leaves over: two peers that both write don't stop reading each other.
  private static let unsentLimit = TLSLoop.blockSize + (64 << 10)

  /// So much ciphertext can't be without anything in it: two of the longest records are less.
  private static let emptyLimit = 64 << 10
  /// The ciphertext that a round of reads takes in addition to the requested bytes.
  private static let overhead = 64 << 10

  let ssl: OpaquePointer
  let isServer: Bool
  let context: TLSContext
  private let transport: any ByteStream
  private let shared: TLSLoop
  private let keepSession: ((SessionCache.Session) -> Void)?

  /// The certificate of the peer that failed verification.
  var refusedCertificate: Certificate?

  /// Ciphertext for which the transport had no room, from `unsentStart` on.
  private var unsent: [UInt8] = []
  private var unsentStart = 0
  /// Why nothing more can be sent.
  private(set) var writeFailure: IOError?

  /// In this call the transport gave less than it could have: there is no more now.
  private var cameShort = false
  /// How much more this round of calls may take from the transport.
  private var allowance = Int.max
  /// The transport was left with more in it than the round might take. It may not report that.
  private(set) var wasCut = false
  /// How much ciphertext has arrived without content since the last content. OpenSSL reads new keys and the like as
  /// long as there are some.
  private var emptyCount = 0
  /// The state of the transport.
  private var transportEnded = false
  private(set) var readFailure: IOError?

  init(
    _ context: TLSContext, isServer: Bool, transport: any ByteStream, shared: TLSLoop,
    keepSession: ((SessionCache.Session) -> Void)? = nil
  ) {
    guard let ssl = unsafe SSL_new(context.pointer), let bio = unsafe BIO_new(TransportBIO.method) else {
      fatalError("out of memory for a TLS connection")
    }
    self.context = context
    unsafe self.ssl = unsafe ssl
    self.isServer = isServer
    self.transport = transport
    self.shared = shared
    self.keepSession = keepSession
    unsafe BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
    unsafe BIO_set_init(bio, 1)
    unsafe SSL_set_bio(ssl, bio, bio)
    if isServer { unsafe SSL_set_accept_state(ssl) } else { unsafe SSL_set_connect_state(ssl) }
  }

  deinit {
    unsafe SSL_free(ssl)
  }

  /// The engine that a connection of OpenSSL's belongs to.
  static func of(_ ssl: OpaquePointer) -> TLSEngine? {
    unsafe SSL_get_rbio(ssl).flatMap { unsafe TransportBIO.engine($0) }
  }

  /// The transport's failure.
  var failure: IOError? { readFailure ?? writeFailure }

  // MARK: Calls

  func handshake() -> Outcome {
    begin(expecting: nil)
    let result = unsafe SSL_do_handshake(ssl)
    emptyCount = 0
    return result == 1 ? .done(0) : outcome(result)
  }

  /// Reads at most `buffer.count` bytes, at least one; the rest of a record stays for the next call.
  func read(into buffer: UnsafeMutableRawBufferPointer) -> Outcome {
    ErrorQueue.clear()
    let result = unsafe SSL_read(ssl, buffer.baseAddress, Int32(clamping: buffer.count))
    guard result > 0 else { return outcome(result) }
    emptyCount = 0
    return .done(Int(result))
  }

  /// Before the first of several calls to ``read(into:)``.
  ///
  /// - Parameter bytes: how many bytes they may read together; nil if that isn't known.
  func begin(expecting bytes: Int?) {
    cameShort = false
    wasCut = false
    allowance = bytes.map { $0 + Self.overhead } ?? .max
    ErrorQueue.clear()
  }

  /// Encrypts all of `bytes`, which isn't empty. Nil when that was done.
  func write(_ bytes: UnsafeRawBufferPointer) -> TLSFault? {
    ErrorQueue.clear()
    let result = unsafe SSL_write(ssl, bytes.baseAddress, Int32(bytes.count))
    if result == Int32(bytes.count) { return nil }
    if case .failed(let fault) = outcome(result) { return fault }
    return TLSFault(.broken, "OpenSSL took \(result) of \(bytes.count) bytes")
  }

  /// Says that nothing more will be sent.
  func sayGoodbye() {
    ErrorQueue.clear()
    _ = unsafe SSL_shutdown(ssl)
    ErrorQueue.clear()
  }

  /// Whether bytes of the peer's are in OpenSSL's hands, decrypted or not.
  var hasBuffered: Bool { unsafe SSL_has_pending(ssl) == 1 }

  var isResumed: Bool { unsafe SSL_session_reused(ssl) == 1 }

  private func outcome(_ result: Int32) -> Outcome {
    switch unsafe SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .needsInput
    case SSL_ERROR_ZERO_RETURN: return .ended
    default:
      if let readFailure { return .failed(TLSFault(readFailure)) }
      if transportEnded { return .failed(TLSFault(.truncated, "")) }
      if talksOfNothing {
        return .failed(TLSFault(.broken, "the peer sent \(emptyCount) bytes of TLS records without content"))
      }
      return .failed(TLSFault(of: self))
    }
  }

  // MARK: Ciphertext out

  /// How much waits for room.
  var unsentCount: Int { unsent.count - unsentStart }

  var isClear: Bool { unsent.isEmpty && writeFailure == nil }

  /// Bytes of memory for ciphertext that waits for room, and for a record of the peer's that wasn't read to its end.
  var heldBytes: Int { unsent.count + (hasBuffered ? TLSLoop.largestRecord : 0) }

  /// So much waits that the peer isn't read.
  var holdsBack: Bool { unsentCount > Self.unsentLimit }

  /// From OpenSSL: always takes all.
  fileprivate func put(_ bytes: UnsafeRawBufferPointer) {
    if writeFailure != nil { return }
    if unsent.isEmpty {
      if unsafe shared.add(bytes) { return }
      flushGathered()
      if writeFailure != nil { return }
      if unsent.isEmpty, unsafe shared.add(bytes) { return }
    }
    unsafe unsent.append(contentsOf: bytes)
  }

  /// At the end of whatever wrote. See ``writeFailure``.
  func flush() {
    if !shared.isEmpty { flushGathered() }
  }

  /// In the middle of it: only if it is much.
  func flushIfFull() {
    if shared.isFull { flushGathered() }
  }

  private func flushGathered() {
    defer { shared.empty() }
    if writeFailure != nil { return }
    let bytes = unsafe shared.gathered
    let count = unsafe send(bytes)
    if writeFailure == nil, count < bytes.count {
      unsafe unsent.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[count...]))
    }
  }

  /// There is room in the transport: sends what waits.
  func sendUnsent() {
    guard !unsent.isEmpty, writeFailure == nil else { return }
    let start = unsentStart
    let sent = unsafe unsent.withUnsafeBytes { unsafe send(UnsafeRawBufferPointer(rebasing: $0[start...])) }
    unsentStart = start + sent
    if unsentStart == unsent.count || writeFailure != nil {
      unsent = []
      unsentStart = 0
    }
  }

  private func send(_ bytes: UnsafeRawBufferPointer) -> Int {
    switch unsafe transport.write(bytes) {
    case .wrote(let count): return count
    case .failed(let error):
      writeFailure = error
      return 0
    }
  }

  // MARK: Ciphertext in

  private var talksOfNothing: Bool { allowance != .max && emptyCount > Self.emptyLimit }

  /// The transport has failed by itself; what OpenSSL has of the peer's bytes can still be read.
  func transportFailed(_ error: IOError) {
    readFailure = readFailure ?? error
    writeFailure = writeFailure ?? error
    unsent = []
    unsentStart = 0
  }

  /// For OpenSSL: bytes, 0 for the end, -1 for none now or a failure.
  fileprivate func take(into buffer: UnsafeMutableRawBufferPointer, _ bio: OpaquePointer) -> Int32 {
    if readFailure != nil { return -1 }
    if transportEnded { return 0 }
    if talksOfNothing { return -1 }
    wasCut = allowance <= 0
    guard !wasCut, !cameShort, !holdsBack else {
      unsafe sluice_bio_retry_read(bio)
      return -1
    }
    switch unsafe transport.read(into: buffer) {
    case .bytes(let count):
      // A failed transport doesn't report its remaining bytes.
      cameShort = count < buffer.count && writeFailure == nil
      emptyCount += count
      if allowance != .max { allowance -= count }
      return Int32(count)
    case .wouldBlock:
      unsafe sluice_bio_retry_read(bio)
      return -1
    case .end:
      transportEnded = true
      return 0
    case .failed(let error):
      readFailure = error
      return -1
    }
  }

  fileprivate var isAtEnd: Bool { transportEnded }

  // MARK: Sessions

  /// From OpenSSL. Returns true when the session's reference was taken over.
  func keep(session: OpaquePointer) -> Bool {
    guard let keepSession else { return false }
    unsafe keepSession(SessionCache.Session(session))
    return true
  }
}

/// How OpenSSL gets at a stream.
enum TransportBIO {
  // nonisolated(unsafe): made once, under the lock of Swift's static variables. Neither it nor OpenSSL changes it afterwards.
  nonisolated(unsafe) static let method: OpaquePointer = {
    let kind = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
    guard let method = unsafe BIO_meth_new(kind, "stream") else { fatalError("out of memory for TLS") }
    unsafe BIO_meth_set_read(method) { bio, target, count in
      guard let bio = unsafe bio, let target = unsafe target, count > 0, let engine = unsafe engine(bio)
      else { return 0 }
      unsafe sluice_bio_clear_retry(bio)
      return unsafe engine.take(into: UnsafeMutableRawBufferPointer(start: target, count: Int(count)), bio)
    }
    unsafe BIO_meth_set_write(method) { bio, source, count in
      guard let bio = unsafe bio, let source = unsafe source, count > 0, let engine = unsafe engine(bio)
      else { return 0 }
      unsafe sluice_bio_clear_retry(bio)
      unsafe engine.put(UnsafeRawBufferPointer(start: source, count: Int(count)))
      return count
    }
    unsafe BIO_meth_set_ctrl(method) { bio, command, _, _ in
      switch command {
      case BIO_CTRL_FLUSH: 1
      case BIO_CTRL_EOF: unsafe bio.flatMap { unsafe engine($0) }?.isAtEnd == true ? 1 : 0
      default: 0
      }
    }
    return unsafe method
  }()

  static func engine(_ bio: OpaquePointer) -> TLSEngine? {
    unsafe BIO_get_data(bio).map { unsafe Unmanaged<TLSEngine>.fromOpaque($0).takeUnretainedValue() }
  }
}

extension TLSContext {
  /// Requests and verifies the peer's certificate, as `mode` states; the reason of a failure is kept for the message.
  func verify(_ mode: Int32) {
    unsafe SSL_CTX_set_verify(pointer, mode) { isGood, store in
      if isGood == 0, let store = unsafe store,
        let certificate = unsafe X509_STORE_CTX_get_current_cert(store),
        let ssl = unsafe X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx())
      {
        unsafe TLSEngine.of(OpaquePointer(ssl))?.refusedCertificate = unsafe Certificate(sharing: certificate)
      }
      return isGood
    }
  }
}
