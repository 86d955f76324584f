import CLinux
import Glibc
import SluiceAccess
import SluiceIO
import SluiceMQTT

/// The broker's stream of a WebSocket client, for either subprotocol: the bytes of the messages for the native protocol, or the ``DoorLink`` of an MQTT
/// client.
///
/// On its loop only.
final class WebSocketDoorStream: PermissionAwareStream, ByteStreamHandler {
  private let socket: WebSocketStream
  private let makeMQTT: (WebSocketStream) -> MQTTHandle
  /// The stream whose bytes the broker reads and writes.
  private var inner: any ByteStream
  private var handler: (any ByteStreamHandler)?
  private var waitsForRoom = false

  init(_ socket: WebSocketStream, mqtt: @escaping (WebSocketStream) -> MQTTHandle) {
    self.socket = socket
    inner = socket
    makeMQTT = mqtt
  }

  var peer: SocketAddress { socket.peer }
  var security: StreamSecurity? { inner.security }
  var heldBytes: Int { inner.heldBytes }
  var obstacle: StreamObstacle? { socket.obstacle }

  func start(_ handler: any ByteStreamHandler) {
    self.handler = handler
    socket.opened = { [weak self] subprotocol in
      if subprotocol == WebSocketStream.mqttProtocol { self?.speakMQTT() }
    }
    socket.start(self)
  }

  private func speakMQTT() {
    guard let handler = handler.take() else { return }
    inner = makeMQTT(socket).link
    inner.readsPaused = socket.readsPaused
    // Bytes that the broker doesn't read wait in the link; the MQTT connection decides when to read from the client.
    socket.readsPaused = false
    inner.start(handler)
    if waitsForRoom { handler.streamWritable() }
  }

  // MARK: The broker's side

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult { unsafe inner.read(into: buffer) }

  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult {
    let result = unsafe inner.write(vectors)
    waitsForRoom = result == .wrote(0)
    return result
  }

  var readsPaused: Bool {
    get { inner.readsPaused }
    set { inner.readsPaused = newValue }
  }

  func learn(_ permissions: any StreamPermissions) {
    (inner as? any PermissionAwareStream)?.learn(permissions)
  }

  func close() {
    handler = nil
    inner.close()
  }

  func abort() {
    handler = nil
    inner.abort()
  }

  // MARK: What the socket reports, unless it belongs to an MQTT client

  func streamReadable() { handler?.streamReadable() }

  func streamWritable() { handler?.streamWritable() }
  func streamHoldsOther() { handler?.streamHoldsOther() }

  func streamFailed(_ error: IOError) {
    let handler = handler.take()
    handler?.streamFailed(error)
  }
}
