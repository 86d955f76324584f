import SluiceAccess
import SluiceCommand
import SluiceHTTP
import SluiceWire

/// Reads parameters and fields of requests about topics as values of the native protocol.
extension HTTPRequest {
  /// The credentials of `Authorization`: Basic or Bearer.
  func credentials() throws(HTTPProblem) -> Credentials {
    guard let field = field("authorization") else { return .none }
    let parts = field.split(separator: " ", maxSplits: 1)
    switch parts.first?.lowercased() {
    case "bearer" where parts.count == 2:
      guard !SignedLink.isLink(String(parts[1])) else {
        throw HTTPProblem(401, "a signed link isn't a token; use its address as it is")
      }
      return .token(String(parts[1]))
    case "basic" where parts.count == 2:
      guard let bytes = Base64.decode(String(parts[1])), let text = String(validating: bytes, as: UTF8.self),
        let colon = text.firstIndex(of: ":")
      else { break }
      return .password(String(text[text.index(after: colon)...]), user: String(text[..<colon]))
    default: break
    }
    throw HTTPProblem(
      401, "Authorization must be Basic with a user's name and password, or Bearer with a token")
  }

  /// The key of the records: `Sluice-Key`, or `Sluice-Key-Base64` for bytes that a field can't contain; nil for none.
  func key() throws(HTTPProblem) -> [UInt8]? {
    guard let encoded = field("sluice-key-base64") else { return field("sluice-key").map { Array($0.utf8) } }
    guard field("sluice-key") == nil else {
      throw HTTPProblem(400, "a request has one of Sluice-Key and Sluice-Key-Base64")
    }
    guard let key = Base64.decode(encoded) else { throw HTTPProblem(400, "Sluice-Key-Base64 isn't base64") }
    return key
  }

  /// When a publication is answered: `ack=received`, the default, `ack=durable` or `ack=none`.
  func acknowledgement() throws(HTTPProblem) -> PublishOpen.Acknowledgement {
    switch parameter("ack") {
    case nil, "received": return .received
    case "durable": return .durable
    case "none": return .none
    default: throw HTTPProblem(400, "ack can be received, durable or none")
    }
  }

  /// The position of the first record; `standard` unless the request sets it.
  func start(otherwise standard: Subscribe.Start = .replay) throws(HTTPProblem) -> Subscribe.Start {
    guard let text = parameter("from") else { return standard }
    switch text {
    case "replay": return .replay
    case "new": return .new
    default: if let start = Values.position(text) { return start }
    }
    throw HTTPProblem(400, "from must be replay, earliest, new, last:COUNT, offset:OFFSET or time:TIME")
  }

  /// The filter of the records: `key=K`, `key-base64=K` for a key that isn't text, `key-prefix=P`, `header=NAME` for records with that header,
  /// `header=NAME:VALUE`. All conditions must hold.
  func filter() throws(HTTPProblem) -> RecordFilter {
    var conditions: [RecordFilter.Condition] = []
    for parameter in query {
      let value = parameter.value
      switch parameter.name {
      case "key": conditions.append(.init(.key, .equals(Array(value.utf8))))
      case "key-base64":
        guard let key = Base64.decode(value) else { throw HTTPProblem(400, "key-base64 isn't base64") }
        conditions.append(.init(.key, .equals(key)))
      case "key-prefix": conditions.append(.init(.key, .hasPrefix(Array(value.utf8))))
      case "header":
        let parts = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let test: RecordFilter.Test = parts.count == 2 ? .equals(Array(parts[1].utf8)) : .exists
        conditions.append(.init(.header(String(parts[0])), test))
      default: break
      }
    }
    return RecordFilter(conditions)
  }

  /// The number of records to send; nil for no limit.
  func count() throws(HTTPProblem) -> UInt64? {
    guard let text = parameter("count") else { return nil }
    guard let count = UInt64(text), count > 0, count < .max else {
      throw HTTPProblem(400, "count must be a number from 1 on")
    }
    return count
  }

  /// The topic of the path.
  func topic() throws(HTTPProblem) -> String { try name(1) }

  /// A name of the path: of a topic, a cursor or a group.
  func name(_ index: Int) throws(HTTPProblem) -> String {
    do throws(WireError) {
      try TopicName.validate(path[index])
    } catch {
      throw HTTPProblem(error)
    }
    return path[index]
  }

  /// A numeric parameter; nil if it is absent.
  func number(_ name: String) throws(HTTPProblem) -> UInt64? {
    guard let text = parameter(name) else { return nil }
    guard let number = UInt64(text) else { throw HTTPProblem(400, "\(name) must be a number") }
    return number
  }

  /// A parameter that is a duration, such as `30s`; nil if it is absent.
  func duration(_ name: String) throws(HTTPProblem) -> Duration? {
    guard let text = parameter(name) else { return nil }
    do {
      return try TimeSpan.parse(text)
    } catch {
      throw HTTPProblem(400, "\(name): \(error)")
    }
  }

  /// Whether the body is in a content coding, such as gzip, which the gateway doesn't decode.
  var hasContentCoding: Bool {
    !head.elements("content-encoding").allSatisfy { $0.lowercased() == "identity" }
  }

  /// The settings of a topic: the parameters, or the body, as `GET /topics/NAME/settings` shows them.
  func settings() throws(HTTPProblem) -> TopicSettings {
    guard body.isEmpty || query.isEmpty else {
      throw HTTPProblem(400, "the request states settings in parameters and in its body; use one of them")
    }
    guard body.isEmpty || !hasContentCoding else {
      throw HTTPProblem(415, "a body in a content coding isn't understood; send it without Content-Encoding")
    }
    do throws(ValueError) {
      guard body.isEmpty else { return try TopicOption.settings(body: body) }
      var settings = TopicSettings()
      for parameter in query { try TopicOption.read(parameter.name, parameter.value, into: &settings) }
      return settings
    } catch {
      throw HTTPProblem(400, "\(error)")
    }
  }
}
