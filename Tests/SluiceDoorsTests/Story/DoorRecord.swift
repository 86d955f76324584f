import Foundation
import SluiceMQTT
import SluiceWire

/// A record in the form that clients of all gateways can see.
struct DoorRecord: Hashable, CustomStringConvertible {
  var key: String?
  /// All headers except the content type and those that a gateway stores for its own use.
  var headers: [String: String] = [:]
  var contentType: String?
  var payload: [UInt8]

  var description: String {
    "\(key ?? "-") \(headers) \(contentType ?? "-") \(String(decoding: payload.prefix(40), as: UTF8.self))"
  }

  // MARK: The native protocol

  var batch: BatchBuilder {
    var fields = headers.sorted { $0.key < $1.key }.map {
      (name: Array($0.key.utf8), value: Array($0.value.utf8))
    }
    if let contentType { fields.append((Array("content-type".utf8), Array(contentType.utf8))) }
    var batch = BatchBuilder()
    payload.withUnsafeBytes { payload in
      Array((key ?? "").utf8).withUnsafeBytes { bytes in
        try! batch.append(key: key == nil ? nil : bytes, headers: fields, payload: payload)
      }
    }
    return batch
  }

  init(_ record: BatchIterator.Record) {
    guard record.isAttributed, let attributes = try? RecordAttributes(record.body) else {
      self.init(payload: Array(record.body))
      return
    }
    self.init(
      key: attributes.key.map { String(decoding: $0, as: UTF8.self) }, payload: Array(attributes.payload))
    attributes.forEachHeader { name, value in
      let name = String(decoding: name, as: UTF8.self)
      // The header that the MQTT gateway stores has one printable byte.
      if name == "mqtt", value.count == 1, (0x30...0x3F).contains(value[0]) { return }
      set(name, String(decoding: value, as: UTF8.self))
    }
  }

  init(
    key: String? = nil, headers: [String: String] = [:], contentType: String? = nil, payload: [UInt8]
  ) {
    self.key = key
    self.headers = headers
    self.contentType = contentType
    self.payload = payload
  }

  private mutating func set(_ name: String, _ value: String) {
    if name == "content-type" { contentType = value } else { headers[name] = value }
  }

  // MARK: HTTP

  /// The fields of a request that publishes the record.
  var fields: String {
    var text = "Content-Length: \(payload.count)\r\n"
    if let key { text += "Sluice-Key: \(key)\r\n" }
    if let contentType { text += "Content-Type: \(contentType)\r\n" }
    for (name, value) in headers { text += "Sluice-Header-\(name): \(value)\r\n" }
    return text
  }

  /// Reads a line of JSON.
  init?(json line: String) {
    guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
      return nil
    }
    func bytes(_ name: String, _ object: [String: Any]) -> [UInt8]? {
      if let text = object[name] as? String { return Array(text.utf8) }
      return (object[name + "_base64"] as? String).flatMap { Data(base64Encoded: $0) }.map { Array($0) }
    }
    guard let payload = bytes("payload", object) else { return nil }
    self.init(key: bytes("key", object).map { String(decoding: $0, as: UTF8.self) }, payload: payload)
    for header in object["headers"] as? [[String: Any]] ?? [] {
      set(header["name"] as? String ?? "", String(decoding: bytes("value", header) ?? [], as: UTF8.self))
    }
  }

  // MARK: MQTT

  func add(to properties: inout MQTTProperties) {
    if let key { properties.append(user: "sluice-key", key) }
    if let contentType { properties.append(.contentType, contentType) }
    for (name, value) in headers { properties.append(user: name, value) }
  }

  init(_ message: MQTTClient.Message) {
    self.init(contentType: message.properties.string(.contentType), payload: message.payload)
    for property in message.properties.userProperties {
      if property.name == "sluice-key" {
        key = property.value
      } else {
        headers[property.name] = property.value
      }
    }
  }
}
