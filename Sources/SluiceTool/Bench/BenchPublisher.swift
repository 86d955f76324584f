import SluiceClient

/// A publisher of records that begin with the time at which they were made.
// Unchecked: used on one thread at a time.
@safe
final class BenchPublisher: @unchecked Sendable {
  private let client: Client
  private let subject: TopicSubject
  private let payload: UnsafeMutableRawBufferPointer
  private(set) var failure: ClientError?

  init(_ client: Client, topic: String, size: Int) {
    self.client = client
    subject = client.subject(topic)
    unsafe payload = .allocate(byteCount: size, alignment: 8)
    for index in unsafe payload.indices { unsafe payload[index] = UInt8(truncatingIfNeeded: index) }
  }

  deinit {
    unsafe payload.deallocate()
  }

  /// Publishes so many records, each after `pause` and as long as that returns true, as far as the broker grants.
  func publish(_ count: UInt64, after pause: () -> Bool) {
    for _ in 0..<count {
      guard pause() else { return }
      unsafe payload.storeBytes(of: MonotonicClock.now.littleEndian, as: UInt64.self)
      do throws(ClientError) {
        let bytes = unsafe UnsafeRawBufferPointer(payload)
        guard try unsafe !subject.enqueue(copying: bytes) else { continue }
        try Waiting.answer { unsafe subject.enqueue(Message([UInt8](bytes)), completion: $0) }
      } catch {
        failure = error
        return
      }
    }
  }

  /// Returns when everything is acknowledged.
  func flush() throws(ClientError) {
    if let failure { throw failure }
    try Waiting.answer { subject.flush(completion: $0) }
  }
}
