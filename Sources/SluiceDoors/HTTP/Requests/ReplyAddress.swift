import SluiceHTTP
import SluiceWire

/// The headers that relate a reply to its request.
enum RequestHeader {
  typealias Value = (name: [UInt8], value: [UInt8])

  /// On a request: the topic for its reply.
  static let replyTo = "reply-to"
  /// On both: the request's id.
  static let correlation = "correlation-id"
  /// On a reply: why the request couldn't be answered.
  static let failure = "reply-error"
}

/// The path of the reply to a request: `/replies/TOPIC/ID`. It contains the request's ID as hexadecimal digits, since an ID may be any bytes.
enum ReplyAddress {
  /// The longest ID, in bytes: the path must fit into the head of a request.
  private static let maximumID = 1024

  /// The address for the reply to a record; nil for one that isn't a request.
  static func path(of attributes: RecordAttributes) -> String? {
    var (topic, id) = (String?.none, [UInt8]?.none)
    unsafe attributes.forEachHeader { name, value in
      if topic == nil, unsafe name.elementsEqual(RequestHeader.replyTo.utf8) {
        topic = unsafe String(validating: value, as: UTF8.self) ?? ""
      } else if id == nil, unsafe name.elementsEqual(RequestHeader.correlation.utf8) {
        id = unsafe Array(value)
      }
    }
    guard let topic, let id, (1...maximumID).contains(id.count), (try? TopicName.validate(topic)) != nil
    else { return nil }
    return "/replies/\(HTTPTarget.encoded(topic))/\(id.flatMap { [digit($0 >> 4), digit($0 & 15)] }.joined())"
  }

  /// The request's ID in the last part of a path; nil for malformed text.
  static func correlation(_ text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard !digits.isEmpty, digits.count % 2 == 0, digits.count <= 2 * maximumID else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let byte = HexDigits.number(digits[index...index + 1]) else { return nil }
      bytes.append(UInt8(byte))
    }
    return bytes
  }

  private static func digit(_ value: UInt8) -> String { String(value, radix: 16, uppercase: true) }
}
