import SluiceCommand
import SluiceSession
import SluiceWebSocket
import SluiceWire

/// `POST /topics/NAME`: publishes the body, and answers when it is in the log.
///
/// The body is one record; with `?lines`, or as `application/x-ndjson`, each of its lines is one. `Sluice-Key` is the key of all of them,
/// `Sluice-Header-NAME` a header, and the type of the content a header `content-type` unless it is the one that programs send by themselves. A request
/// with an `Idempotency-Key` that comes again publishes nothing that is in the log already: the key makes a producer of it, as long as the topic remembers.
final class HTTPPublishing: HTTPExchange {
  private unowned let connection: HTTPConnection
  private let topic: String
  private let stream: UInt32
  private let batch: BatchBuilder
  /// Records, and bytes, that were sent.
  private var sent: UInt64 = 0
  private var sentBytes = 0
  private var isOpen = false

  private static let ordinaryTypes = ["application/x-www-form-urlencoded", "application/octet-stream"]

  init(_ request: HTTPRequest, by connection: HTTPConnection) throws(HTTPProblem) {
    self.connection = connection
    topic = request.path[1]
    do throws(WireError) {
      try TopicName.validate(topic)
      batch = try Self.batch(of: request)
    } catch {
      throw HTTPProblem(error)
    }
    guard let stream = connection.native.openPublication() else {
      throw HTTPProblem(429, "the connection has too many streams")
    }
    self.stream = stream
    let producer = request.field("idempotency-key").map { Self.producer($0) } ?? 0
    connection.link.send(
      PublishOpen(topic: topic, acknowledgement: .received, producer: producer), stream: stream)
  }

  /// A producer's number for a key: 63 bits of its hash (FNV-1a), never 0.
  private static func producer(_ key: String) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in key.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return hash | 1 << 63
  }

  static func batch(of request: HTTPRequest) throws(WireError) -> BatchBuilder {
    var headers: [(name: [UInt8], value: [UInt8])] = []
    var type = request.field("content-type").map { String($0.prefix { $0 != ";" }).lowercased() } ?? ""
    let isLines = type == "application/x-ndjson" || request.parameter("lines") != nil
    if isLines, type == "application/x-ndjson" { type = "application/json" }
    if !type.isEmpty, !ordinaryTypes.contains(type) {
      headers.append((Array("content-type".utf8), Array(type.utf8)))
    }
    for field in request.head.fields {
      guard field.name.lowercased().hasPrefix("sluice-header-") else { continue }
      headers.append((Array(field.name.dropFirst(14).lowercased().utf8), Array(field.value.utf8)))
    }
    let key = request.field("sluice-key").map { Array($0.utf8) }
    var batch = BatchBuilder()
    func add(_ payload: ArraySlice<UInt8>) throws(WireError) {
      let result = unsafe payload.withUnsafeBytes { payload in
        unsafe (key ?? []).withUnsafeBytes { bytes in
          Result { () throws(WireError) in
            try unsafe batch.append(key: key == nil ? nil : bytes, headers: headers, payload: payload)
          }
        }
      }
      try result.get()
    }
    guard isLines else {
      try add(request.body[...])
      return batch
    }
    for line in request.body.split(separator: 0x0A) {
      let line = line.last == 0x0D ? line.dropLast() : line
      if !line.isEmpty { try add(line) }
    }
    return batch
  }

  func received(_ action: ClientAction) {
    switch action {
    case .publicationOpened(_, let next):
      isOpen = true
      // Of a request that comes again: what is in the log isn't sent again.
      skip(Int(clamping: min(next, UInt64(batch.count))))
      if sent == UInt64(batch.count) { done(lastOffset: nil) }
    case .acknowledged(_, let ack) where ack.through >= UInt64(batch.count): done(lastOffset: ack.lastOffset)
    case .refused(_, let fault): connection.refuse(HTTPProblem(WireError(fault.code, fault.message)))
    case .ended: connection.refuse(HTTPProblem(409, "topic \(topic) has ended"))
    default: break
    }
  }

  private func skip(_ count: Int) {
    sentBytes = unsafe batch.bytes.withUnsafeBytes {
      unsafe Self.length(of: count, in: $0, from: 0, room: .max).bytes
    }
    sent = UInt64(count)
  }

  /// How many records fit `room`, at least one, and their bytes.
  private static func length(
    of most: Int, in bytes: UnsafeRawBufferPointer, from start: Int, room: Int
  ) -> (count: Int, bytes: Int) {
    guard let base = bytes.baseAddress else { return (0, 0) }
    var length = 0
    for count in 0..<most {
      let size = RecordLayout.itemSize(unsafe RecordLayout.word(at: base + start + length))
      if count > 0, length + size > room { return (count, length) }
      length += size
    }
    return (most, length)
  }

  func turnEnds() {
    guard isOpen else { return }
    let longest = Int(connection.welcome?.maximumFrame ?? 65_536) - PublishHeader.size
    while sent < UInt64(batch.count) {
      let most = Int(clamping: min(connection.native.available(stream), UInt64(batch.count) - sent))
      guard most > 0 else { return }
      let room = Int(clamping: min(connection.native.availableBytes(stream), UInt64(longest)))
      unsafe batch.bytes.withUnsafeBytes { bytes in
        let part = unsafe Self.length(of: most, in: bytes, from: sentBytes, room: room)
        let sequence = connection.native.publish(stream, count: UInt32(part.count), bytes: part.bytes)
        unsafe connection.link.publish(
          stream, from: sequence, count: part.count,
          UnsafeRawBufferPointer(rebasing: bytes[sentBytes..<sentBytes + part.bytes]))
        sent += UInt64(part.count)
        sentBytes += part.bytes
      }
    }
  }

  private func done(lastOffset: UInt64?) {
    if connection.native.cancel(stream) { connection.link.send(Cancel(), stream: stream) }
    let offset = lastOffset.map { ",\"lastOffset\":\($0)" } ?? ",\"isDuplicate\":true"
    connection.answer(
      200, "{\"topic\":\(JSONText.quoted(topic)),\"records\":\(batch.count)\(offset)}\n")
  }

  func failed(_ problem: HTTPProblem) { connection.refuse(problem) }
}
