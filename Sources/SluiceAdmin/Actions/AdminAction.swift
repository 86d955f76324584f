import SluiceBroker
import SluiceCommand
import SluiceWire

/// A change that a request asks for, by its method and path.
enum AdminAction: Hashable, Sendable {
  case create(topic: String)
  case set(topic: String)
  case trim(topic: String)
  case delete(topic: String)
  case publish(topic: String)
  case move(consumer: String, topic: String)
  case forget(consumer: String, topic: String)
  case disconnect(UInt64)

  /// Nil for a path without changes, and for a method that only reads.
  ///
  /// - Throws: 404 or 405, with the reason.
  init?(_ method: String, _ path: [String]) throws(AdminProblem) {
    let isReading = method == "GET" || method == "HEAD"
    switch (path.count, path.first, path.dropFirst().first) {
    case (3, "api", "topics") where !path[2].isEmpty && !isReading:
      switch method {
      case "PUT": self = .create(topic: path[2])
      case "PATCH": self = .set(topic: path[2])
      case "DELETE": self = .delete(topic: path[2])
      default: throw Self.refused("a topic", allow: "GET, HEAD, PUT, PATCH, DELETE")
      }
    case (4, "api", "topics") where !path[2].isEmpty && path[3] == "trim":
      guard method == "POST" else { throw Self.refused("this", allow: "POST") }
      self = .trim(topic: path[2])
    case (4, "api", "topics") where !path[2].isEmpty && path[3] == "records" && !isReading:
      guard method == "POST" else { throw Self.refused("this", allow: "GET, HEAD, POST") }
      self = .publish(topic: path[2])
    case (5, "api", "topics") where !path[2].isEmpty && path[3] == "consumers" && !path[4].isEmpty:
      guard method == "DELETE" else { throw Self.refused("a group or cursor", allow: "DELETE") }
      self = .forget(consumer: path[4], topic: path[2])
    case (6, "api", "topics") where path[3] == "consumers" && !path[4].isEmpty && path[5] == "move":
      guard method == "POST" else { throw Self.refused("this", allow: "POST") }
      self = .move(consumer: path[4], topic: path[2])
    case (3, "api", "connections") where !path[2].isEmpty:
      guard method == "DELETE" else { throw Self.refused("a connection", allow: "DELETE") }
      guard let connection = UInt64(path[2]) else {
        throw .notFound("'\(path[2])' isn't the number of a connection")
      }
      self = .disconnect(connection)
    default: return nil
    }
  }

  private static func refused(_ what: String, allow: String) -> AdminProblem {
    AdminProblem(405, "\(what) takes \(allow), nothing else", HTTPHeader("Allow", allow))
  }

  /// Whether the request has a body.
  var takesBody: Bool {
    switch self {
    case .create, .set, .trim, .publish, .move: true
    case .delete, .forget, .disconnect: false
    }
  }

  /// The topic that the answer describes; nil if there is no topic to describe.
  var changedTopic: String? {
    switch self {
    case .create(let topic), .set(let topic), .trim(let topic): topic
    case .delete, .publish, .move, .forget, .disconnect: nil
    }
  }

  // MARK: Bodies

  /// Returns the request to the broker.
  ///
  /// - Throws: 400 for an invalid body.
  func request(_ body: [UInt8]) throws(AdminProblem) -> AdministrationRequest {
    switch self {
    case .create(let topic):
      let settings = body.isEmpty ? TopicSettings() : try Self.settings(body)
      return .createTopic(TopicCreate(topic: topic, settings: settings))
    case .set(let topic):
      let settings = try Self.settings(body)
      guard settings != TopicSettings() else { throw .badRequest("there is no setting to change") }
      return .setTopic(TopicSet(topic: topic, settings: settings))
    case .trim(let topic): return .trimTopic(TopicTrim(topic: topic, try Self.limit(Self.members(body))))
    case .delete(let topic): return .deleteTopic(topic)
    case .publish(let topic): return .publish(try Self.record(Self.members(body), for: topic))
    case .move(let consumer, let topic):
      return .moveCursor(CursorMove(topic: topic, name: consumer, to: try Self.start(Self.members(body))))
    case .forget(let consumer, let topic): return .deleteCursor(CursorDelete(topic: topic, name: consumer))
    case .disconnect(let connection): return .closeConnection(connection)
    }
  }

  private static func members(_ body: [UInt8]) throws(AdminProblem) -> [String: JSONContent] {
    do {
      guard let members = try JSONReader.read(body).object else {
        throw AdminProblem.badRequest("the body isn't an object of JSON")
      }
      return members
    } catch let problem as AdminProblem {
      throw problem
    } catch {
      throw .badRequest("the body can't be read: \(error)")
    }
  }

  private static func settings(_ body: [UInt8]) throws(AdminProblem) -> TopicSettings {
    do throws(ValueError) {
      return try TopicOption.settings(body: body)
    } catch {
      throw .badRequest("\(error)")
    }
  }

  /// `{"before": 4711}` or `{"keepLast": 100}`.
  private static func limit(_ members: [String: JSONContent]) throws(AdminProblem) -> TopicTrim.Limit {
    let names = members.keys.sorted()
    guard names == ["before"] || names == ["keepLast"] else {
      throw .badRequest(
        "the body has to have either \"before\", an offset, or \"keepLast\", a number of records")
    }
    let text: String? =
      switch members[names[0]] {
      case .number(let value), .text(let value): value
      default: nil
      }
    guard let number = text.flatMap({ UInt64($0) }) else {
      throw .badRequest("\(names[0]) isn't a whole number from 0 on")
    }
    return names[0] == "before" ? .from(number) : .newest(number)
  }

  /// `{"to": "earliest"}`, with the positions of `sluice cursor move`.
  private static func start(_ members: [String: JSONContent]) throws(AdminProblem) -> Subscribe.Start {
    guard members.count == 1, let text = members["to"]?.text else {
      throw .badRequest("the body has to have \"to\", such as \"earliest\", and nothing else")
    }
    return text == "new" ? .new : try RecordQuery.position(text, named: "to", or: "new, ")
  }

  /// `{"key": {"text": "k"}, "headers": [{"name": "a", "text": "b"}], "payload": {"text": "…"}}`, like shown records; `hex` instead of `text` for any bytes.
  private static func record(
    _ members: [String: JSONContent], for topic: String
  ) throws(AdminProblem) -> RecordPublication {
    var members = members
    guard let payload = members.removeValue(forKey: "payload") else {
      throw .badRequest("the body has to have \"payload\", an object with \"text\" or \"hex\"")
    }
    var record = RecordPublication(topic: topic, payload: try bytes(payload, "payload"))
    if let key = members.removeValue(forKey: "key"), key != .null { record.key = try bytes(key, "key") }
    if let stated = members.removeValue(forKey: "headers") {
      guard let headers = stated.array else { throw .badRequest("headers: a list is expected") }
      for header in headers {
        var parts = header.object ?? [:]
        guard let name = parts.removeValue(forKey: "name")?.text, !name.isEmpty else {
          throw .badRequest("headers: an object with \"name\", and \"text\" or \"hex\", is expected")
        }
        record.headers.append(.init(name: Array(name.utf8), value: try bytes(.object(parts), "headers")))
      }
    }
    try end(members)
    return record
  }

  private static func bytes(_ content: JSONContent, _ name: String) throws(AdminProblem) -> [UInt8] {
    if let members = content.object, members.count == 1 {
      if let text = members["text"]?.text { return Array(text.utf8) }
      if let hex = members["hex"]?.text, let bytes = bytes(hex: hex) { return bytes }
    }
    throw .badRequest("\(name): either \"text\", or \"hex\" with two digits a byte, is expected")
  }

  private static func bytes(hex: String) -> [UInt8]? {
    let digits = hex.filter { !$0.isWhitespace }.map(\.hexDigitValue)
    guard digits.count.isMultiple(of: 2), !digits.contains(nil) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0]! << 4 | digits[$0 + 1]!) }
  }

  private static func end(_ members: [String: JSONContent]) throws(AdminProblem) {
    guard let name = members.keys.min() else { return }
    throw .badRequest("there is no member '\(name)' here")
  }
}

extension AdminProblem {
  /// The answer to a request that the broker has rejected.
  init(_ error: WireError) {
    let status =
      switch error.code {
      case .permissionDenied: 403
      case .unknownTopic, .topicDeleted, .unknownConnection, .unknownCursor: 404
      case .topicExists, .topicEnded: 409
      case .invalidTopic, .invalidSetting, .unsupported, .keyRequired, .malformedBatch, .recordTooLarge: 400
      case .topicMoved: 421
      case .limitReached: 429
      case .storageFull: 507
      default: 503
      }
    self.init(status, error.message)
  }
}
