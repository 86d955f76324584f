import SluiceCommand
import SluiceSession
import SluiceHTTP
import SluiceWire

/// A request about topics that the broker answers with one frame: lists, settings, trimming, cursors. Permissions are checked as for any client.
///
/// Settings are parameters with the names of the command line, `PUT /topics/prices?replay-records=100&flow=lossless`, or a body, `{"settings": {"replay-records": 100}}`.
final class HTTPTopicRequest: HTTPExchange {
  private unowned let connection: HTTPConnection
  private let stream: UInt32

  private init(_ frame: some Frame, by connection: HTTPConnection) throws(HTTPProblem) {
    self.connection = connection
    guard let stream = connection.native.openRequest() else {
      throw HTTPProblem(429, "the connection has too many streams")
    }
    self.stream = stream
    connection.link.send(frame, stream: stream)
  }

  /// `GET /topics?after=NAME&limit=N`.
  static func list(
    _ request: HTTPRequest, by connection: HTTPConnection
  ) throws(HTTPProblem) -> HTTPTopicRequest {
    let limit = try request.number("limit") ?? 1000
    guard (1...10_000).contains(limit) else { throw HTTPProblem(400, "limit must be from 1 to 10000") }
    return try HTTPTopicRequest(
      TopicList(after: request.parameter("after") ?? "", limit: UInt32(limit)), by: connection)
  }

  /// `GET /topics/NAME/settings`.
  static func show(
    _ request: HTTPRequest, by connection: HTTPConnection
  ) throws(HTTPProblem) -> HTTPTopicRequest {
    try HTTPTopicRequest(TopicShow(topic: request.topic()), by: connection)
  }

  /// `PUT` creates, `PATCH` changes settings, `DELETE` deletes.
  static func change(
    _ request: HTTPRequest, by connection: HTTPConnection
  ) throws(HTTPProblem) -> HTTPTopicRequest {
    let topic = try request.topic()
    switch request.head.method {
    case "PUT":
      return try HTTPTopicRequest(TopicCreate(topic: topic, settings: request.settings()), by: connection)
    case "PATCH":
      return try HTTPTopicRequest(TopicSet(topic: topic, settings: request.settings()), by: connection)
    default: return try HTTPTopicRequest(TopicDelete(topic: topic), by: connection)
    }
  }

  /// The limits of a trim: the names of the command line, and those of earlier versions.
  static let trimParameters = ["before", "keep-last", "from", "newest"]

  /// `POST /topics/NAME/trim?before=OFFSET` or `?keep-last=N`.
  static func trim(
    _ request: HTTPRequest, by connection: HTTPConnection
  ) throws(HTTPProblem) -> HTTPTopicRequest {
    let given = trimParameters.filter { request.parameter($0) != nil }
    guard given.count == 1, let number = try request.number(given[0]) else {
      throw HTTPProblem(400, "say how far: before=OFFSET or keep-last=COUNT")
    }
    let limit: TopicTrim.Limit = ["before", "from"].contains(given[0]) ? .from(number) : .newest(number)
    return try HTTPTopicRequest(TopicTrim(topic: request.topic(), limit), by: connection)
  }

  /// `POST /topics/NAME/cursors/CURSOR?from=…` moves a durable cursor, or a group; `DELETE` deletes it.
  static func cursor(
    _ request: HTTPRequest, by connection: HTTPConnection
  ) throws(HTTPProblem) -> HTTPTopicRequest {
    let (topic, name) = (try request.topic(), try request.name(3))
    guard request.head.method == "POST" else {
      return try HTTPTopicRequest(CursorDelete(topic: topic, name: name), by: connection)
    }
    guard request.parameter("from") != nil else {
      throw HTTPProblem(400, "say where the cursor goes: from=offset:OFFSET, for example")
    }
    return try HTTPTopicRequest(
      CursorMove(topic: topic, name: name, to: request.start()), by: connection)
  }

  func received(_ action: ClientAction) {
    switch action {
    case .topicInfo(_, let info): connection.answer(200, Self.text(info) + "\n")
    case .topics(_, let list):
      let topics = JSON.array(list.topics.map { Self.text($0) })
      connection.answer(200, "\(["topics": topics, "more": .flag(list.more)] as JSON)\n")
    case .done: connection.answer(204, "")
    case .refused(_, let fault): connection.refuse(HTTPProblem(WireError(fault)))
    default: break
    }
  }

  private static func text(_ info: TopicInfo) -> String {
    (text(info.summary) + ["settings": TopicOption.json(info.settings)]).description
  }

  private static func text(_ topic: TopicSummary) -> JSON {
    [
      "topic": .text(topic.topic), "epoch": .text("\(topic.epoch)"),
      "firstOffset": .number(topic.firstOffset),
      "nextOffset": .number(topic.nextOffset), "records": .number(topic.records),
      "bytes": .number(topic.bytes),
      "subscriptions": .number(topic.subscriptions), "publications": .number(topic.publications),
      "storage": .text(topic.storage == .durable ? "durable" : "memory"),
      "hasEnded": .flag(topic.ending != nil),
    ]
  }

  func failed(_ problem: HTTPProblem) { connection.refuse(problem) }
}
