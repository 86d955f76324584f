import Glibc
import SluiceAccess
import SluiceClient
import SluiceCommand

/// The notation of a record in the input.
enum RecordNotation: Equatable {
  /// The payload alone.
  case plain
  /// A key, this separator, and the payload.
  case keyed([UInt8])
  /// An object as `sluice sub --json` prints it.
  case json

  /// The record in `bytes`; nil if all of them are the payload.
  ///
  /// - Parameter number: the record's number in the input, from 1, for messages.
  func message(in bytes: UnsafeRawBufferPointer, number: Int) throws(InputError) -> Message? {
    switch self {
    case .plain: return nil
    case .keyed(let separator):
      guard let place = unsafe Self.place(of: separator, in: bytes) else {
        throw InputError(
          description:
            "record \(number) has no '\(String(decoding: separator, as: UTF8.self))' between a key and a payload"
        )
      }
      return unsafe Message([UInt8](bytes[(place + separator.count)...]), key: [UInt8](bytes[..<place]))
    case .json:
      do throws(ValueError) {
        return try unsafe Self.object(bytes)
      } catch {
        throw InputError(description: "record \(number): \(error)")
      }
    }
  }

  private static func place(of separator: [UInt8], in bytes: UnsafeRawBufferPointer) -> Int? {
    guard let start = bytes.baseAddress, let first = separator.first else { return nil }
    var position = 0
    while position + separator.count <= bytes.count {
      let left = bytes.count - separator.count + 1 - position
      guard let found = unsafe memchr(start + position, Int32(first), left) else { return nil }
      if unsafe memcmp(found, separator, separator.count) == 0 {
        return unsafe UnsafeRawPointer(found) - start
      }
      position = unsafe UnsafeRawPointer(found) - start + 1
    }
    return nil
  }

  private static func object(_ bytes: UnsafeRawBufferPointer) throws(ValueError) -> Message {
    guard let members = try unsafe JSONReader.read(bytes).object else {
      throw ValueError("it isn't an object")
    }
    guard let payload = try text("payload", of: members) else {
      throw ValueError("it has neither payload nor payload_base64")
    }
    var headers: [Message.Header] = []
    if let named = members["headers"]?.object {
      for (name, value) in named.sorted(by: { $0.key < $1.key }) {
        guard let text = value.text else { throw ValueError("header \(name) isn't a text") }
        headers.append(Message.Header(name, text))
      }
    } else if let list = members["headers"] {
      guard let list = list.array else { throw ValueError("headers is neither a list nor an object") }
      for header in list {
        guard let parts = header.object, let name = parts["name"]?.text,
          let value = try text("value", of: parts)
        else {
          throw ValueError("a header has no name, or neither value nor value_base64")
        }
        headers.append(Message.Header(name, value))
      }
    }
    return Message(payload, key: try text("key", of: members), headers: headers)
  }

  /// The bytes of a member, or in base 64 of the member with `_base64` appended to its name; nil if it has neither.
  private static func text(
    _ name: String, of members: [String: JSONContent]
  ) throws(ValueError) -> [UInt8]? {
    if let value = members[name] {
      guard let text = value.text else { throw ValueError("\(name) isn't a text") }
      return Array(text.utf8)
    }
    guard let value = members["\(name)_base64"] else { return nil }
    var text = (value.text ?? "").utf8[...]
    while text.last == UInt8(ascii: "=") { text.removeLast() }
    guard value.text != nil, let bytes = Base64Text.standard.decode(text) else {
      throw ValueError("\(name)_base64 isn't base 64")
    }
    return bytes
  }
}
