import SluiceWire

extension MQTTHub {
  /// A session's identity and client identifier: clients of different identities may use the same identifier.
  struct Key: Hashable, Sendable {
    var identity: String
    var clientID: String

    /// Client identifiers are compared by bytes, because MQTT doesn't normalise them.
    static func == (left: Self, right: Self) -> Bool {
      left.identity == right.identity && left.clientID.utf8.elementsEqual(right.clientID.utf8)
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(identity)
      for byte in clientID.utf8 { hasher.combine(byte) }
    }
  }
}

extension MQTTHub.Key: Comparable {
  static func < (left: Self, right: Self) -> Bool {
    (left.identity, left.clientID) < (right.identity, right.clientID)
  }
}

extension MQTTHub.Key {
  /// The key in records.
  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.string(identity)
    writer.string(clientID)
    return writer.bytes
  }

  /// Nil for malformed bytes.
  init?(decoding bytes: UnsafeRawBufferPointer) {
    var reader = unsafe ByteReader(bytes)
    guard let identity = try? reader.string("identity"),
      let clientID = try? reader.string("client identifier")
    else { return nil }
    self.init(identity: identity, clientID: clientID)
  }
}
