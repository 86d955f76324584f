import SluiceHTTP
import SluiceSession
import SluiceWire

/// A publication of the connection's client that sends one batch, as far as the broker grants.
struct HTTPPublication {
  private let stream: UInt32
  private let batch: BatchBuilder
  /// Records, and bytes, that were sent.
  private var sent: UInt64 = 0
  private var sentBytes = 0
  /// Whether the broker has opened it.
  private(set) var isOpen = false
  /// Whether the log contained all records before.
  private(set) var isDuplicate = false

  /// Opens the publication.
  ///
  /// - Throws: ``HTTPProblem`` when the connection has no stream left.
  init(
    _ batch: BatchBuilder, to topic: String, acknowledgement: PublishOpen.Acknowledgement = .received,
    role: PublishOpen.Role = .producer, producer: UInt64 = 0, by connection: HTTPConnection
  ) throws(HTTPProblem) {
    guard let stream = connection.native.openPublication() else {
      throw HTTPProblem(429, "the connection has too many streams")
    }
    self.stream = stream
    self.batch = batch
    connection.link.send(
      PublishOpen(topic: topic, acknowledgement: acknowledgement, role: role, producer: producer),
      stream: stream)
  }

  /// How many records there are.
  var count: UInt64 { UInt64(batch.count) }

  /// The memory of the batch, in bytes.
  var heldBytes: Int { batch.bytes.count }

  /// Whether all records were sent, or are in the log already.
  var isSent: Bool { sent == count }

  /// The broker has opened the publication, and has the first `count` records already.
  mutating func opened(skipping count: Int) {
    isOpen = true
    isDuplicate = count > 0 && UInt64(count) == self.count
    sentBytes = unsafe batch.bytes.withUnsafeBytes { unsafe RecordLayout.fitting(count, of: $0).bytes }
    sent = UInt64(count)
  }

  /// Sends what the broker grants.
  mutating func send(by connection: HTTPConnection) {
    guard isOpen else { return }
    let longest = Int(connection.welcome?.maximumFrame ?? 65_536) - PublishHeader.size
    while !isSent {
      let most = Int(clamping: min(connection.native.available(stream), count - sent))
      guard most > 0 else { return }
      let room = Int(clamping: min(connection.native.availableBytes(stream), UInt64(longest)))
      unsafe batch.bytes.withUnsafeBytes { bytes in
        let unsent = unsafe UnsafeRawBufferPointer(rebasing: bytes[sentBytes...])
        let part = unsafe RecordLayout.fitting(most, of: unsent, in: room)
        let sequence = connection.native.publish(stream, count: UInt32(part.count), bytes: part.bytes)
        unsafe connection.link.publish(
          stream, from: sequence, count: part.count,
          UnsafeRawBufferPointer(rebasing: unsent[..<part.bytes]))
        sent += UInt64(part.count)
        sentBytes += part.bytes
      }
    }
  }

  /// Ends the publication; records that were sent stay in the log.
  func cancel(by connection: HTTPConnection) {
    if connection.native.cancel(stream) { connection.link.send(Cancel(), stream: stream) }
  }
}
