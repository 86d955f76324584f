import SluiceWire

/// Messages of a publication that were sent and aren't acknowledged. They are sent again when another node serves the topic.
///
/// Only in a cluster. The owner of a topic acknowledges every record, so there are at most as many as the topic has granted.
final class MQTTResending {
  private var bytes: [UInt8] = []
  /// One for each record, with its sequence.
  private var tokens: [MQTTToken] = []

  /// Keeps records that were sent, the first one with that sequence.
  func keep(_ records: UnsafeRawBufferPointer, _ tokens: ArraySlice<MQTTToken>, from sequence: UInt64) {
    unsafe bytes.append(contentsOf: records)
    for (index, token) in tokens.enumerated() {
      var token = token
      token.sentAt = sequence + UInt64(index)
      self.tokens.append(token)
    }
  }

  func acknowledged(through: UInt64) {
    let count = tokens.prefix { $0.sentAt ?? 0 < through }.count
    guard count > 0 else { return }
    if count == tokens.count {
      bytes.removeAllKeepingUseful()
      tokens.removeAllKeepingUseful()
      return
    }
    let length = unsafe bytes.withUnsafeBytes { unsafe RecordLayout.fitting(count, of: $0).bytes }
    bytes.removeFirst(length)
    tokens.removeFirst(count)
  }

  /// Removes and returns all messages.
  ///
  /// - Parameter isKnown: whether the topic remembers the producer ID and so drops duplicates. If not, messages at QoS 0 aren't sent again.
  func take(isKnown: Bool) -> (bytes: [UInt8], tokens: [MQTTToken]) {
    defer { (bytes, tokens) = ([], []) }
    guard !isKnown, tokens.contains(where: { $0.packetID == 0 }) else { return (bytes, tokens) }
    var (kept, start): ([UInt8], Int) = ([], 0)
    for token in tokens {
      let size = unsafe bytes.withUnsafeBytes {
        unsafe RecordLayout.fitting(1, of: UnsafeRawBufferPointer(rebasing: $0[start...])).bytes
      }
      if token.packetID != 0 { kept += bytes[start..<start + size] }
      start += size
    }
    return (kept, tokens.filter { $0.packetID != 0 })
  }
}
