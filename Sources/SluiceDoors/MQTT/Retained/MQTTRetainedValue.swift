import SluiceMQTT
import SluiceWire

/// A retained message to publish again.
struct MQTTRetainedValue {
  /// The time of its publication, in milliseconds since 1970.
  var time: Int64
  /// Of kind ``RecordLayout/Kind/attributed``.
  var body: [UInt8]

  /// Returns the record that publishes the message again, with the expiry that remains at `now`; nil if it has expired.
  func record(at now: Int64) -> BatchBuilder? {
    unsafe body.withUnsafeBytes { body -> BatchBuilder? in
      guard let parts = try? unsafe RecordAttributes(body) else { return nil }
      var isExpired = false
      var headers: [(name: [UInt8], value: [UInt8])] = []
      unsafe parts.forEachHeader { name, value in
        var header = unsafe (name: Array(name), value: Array(value))
        if unsafe name.elementsEqual(MQTTRecordHeaders.expiry.utf8),
          let seconds = unsafe UInt32(String(decoding: value, as: UTF8.self))
        {
          let left = Int64(seconds) - max(0, now - time) / 1000
          isExpired = isExpired || left <= 0
          header.value = Array("\(max(0, left))".utf8)
        }
        headers.append(header)
      }
      guard !isExpired else { return nil }
      var batch = BatchBuilder()
      guard (try? unsafe batch.append(key: parts.key, headers: headers, payload: parts.payload)) != nil else {
        return nil
      }
      return batch
    }
  }
}
