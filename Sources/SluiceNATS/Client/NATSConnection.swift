import Glibc
import SluiceIO
import SluiceTLS

/// One connection to a server: reads and writes bytes, with TLS if the session requests it.
///
/// The transport retains the connection until it is closed. The connection refers to the client weakly. On the loop only.
@safe
final class NATSConnection: ByteStreamHandler {
  /// The initial size of the read buffer, and the size up to which a full buffer grows.
  private static let readSizes = (least: 16 << 10, most: 512 << 10)

  private weak var client: NATSClient?
  private var stream: any ByteStream
  private var upgrade: (any ConnectionAttempt)?
  private var parser = NATSParser()
  private var readBuffer: UnsafeMutableRawBufferPointer
  private var isClosed = false

  init(_ stream: any ByteStream, of client: NATSClient) {
    self.stream = stream
    self.client = client
    unsafe readBuffer = .allocate(byteCount: Self.readSizes.least, alignment: 16)
  }

  deinit {
    unsafe readBuffer.deallocate()
  }

  func start() {
    stream.start(self)
  }

  /// Adds TLS. The client is notified of the result.
  func secure(_ address: NATSAddress, certificateName: String, over network: TLSNetwork) {
    guard let client, let plain = stream as? HandoverStream else { return }
    plain.release()
    upgrade = network.secure(plain, server: certificateName, port: address.port, on: client.loop) {
      [self] result in
      upgrade = nil
      guard !isClosed else {
        if case .success(let secured) = result { secured.abort() }
        return
      }
      switch result {
      case .success(let secured):
        stream = secured
        secured.start(self)
        self.client?.secured(self)
      case .failure(let error): end(error)
      }
    }
  }

  // MARK: Bytes

  func streamReadable() {
    if isClosed { return }
    guard client != nil else { return close() }
    switch unsafe stream.read(into: readBuffer) {
    case .wouldBlock: return
    case .end: end(nil)
    case .failed(let error): end(error)
    case .bytes(let count): take(count)
    }
  }

  private func take(_ count: Int) {
    guard let client else { return }
    client.heard()
    let bytes = unsafe NATSBytes(UnsafeRawBufferPointer(rebasing: readBuffer[..<count]))
    var isBeforeTLS = false
    do throws(NATSError) {
      let taken = try parser.parse(bytes) { operation throws(NATSError) in
        client.received(operation)
        isBeforeTLS = upgrade != nil
        return !isClosed && !isBeforeTLS
      }
      // Plain text after INFO would be treated as bytes from TLS.
      if isBeforeTLS, !isClosed, taken < bytes.count {
        throw NATSError.violation("the server sent more than INFO before TLS")
      }
    } catch {
      client.violated(error)
    }
    if isClosed { return }
    // Set between reads, since the parser is in use while it passes operations on.
    parser.maximumPayload = client.maximumPayload
    if unsafe count == readBuffer.count, count < Self.readSizes.most { growReadBuffer() }
  }

  private func growReadBuffer() {
    let size = unsafe min(readBuffer.count * 4, Self.readSizes.most)
    unsafe readBuffer.deallocate()
    unsafe readBuffer = .allocate(byteCount: size, alignment: 16)
  }

  func streamWritable() {
    client?.flush()
  }

  /// Writes as much as the transport accepts. Returns the reason if the connection has failed.
  func write(_ output: inout NATSOutput) -> IOError? {
    guard upgrade == nil, !isClosed else { return nil }
    return output.write(to: stream)
  }

  // MARK: The end

  func streamFailed(_ error: IOError) { end(error) }

  /// Called when the connection has ended.
  func end(_ error: IOError?) {
    guard !isClosed else { return }
    let client = client
    close()
    client?.lost(self, error)
  }

  /// Drops the connection without notifying the client.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    upgrade?.abandon()
    upgrade = nil
    stream.close()
  }
}
