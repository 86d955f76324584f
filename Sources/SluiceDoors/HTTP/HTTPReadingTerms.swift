import SluiceHTTP
import SluiceWire

/// What a request for a topic's records, or a pattern's, asks for.
struct HTTPReadingTerms {
  let name: String
  let isPattern: Bool
  /// Whether the records are requests that the client replies to: they begin with the next one unless `from` says otherwise, the topic is
  /// created where it isn't there, and each object has the address for its reply.
  let areRequests: Bool
  let format: HTTPRecordFormat
  let endsWhenLive: Bool
  let start: Subscribe.Start
  let filter: RecordFilter
  /// Records that are wanted; nil for all.
  let count: UInt64?
  /// The durable cursor that it moves; empty for none.
  let cursor: String
  /// The records that may be asked for and not written to the client yet; nil for no limit.
  let window: UInt64?
  /// How long nothing may be written; nil for ever.
  let interval: Duration?

  static let parameters = [
    "count", "cursor", "demand", "from", "header", "keepalive", "key", "key-base64", "key-prefix", "until",
  ]

  init(_ request: HTTPRequest, areRequests: Bool, _ options: DoorOptions) throws(HTTPProblem) {
    name = request.path[1]
    isPattern = TopicPattern.hasWildcards(name)
    self.areRequests = areRequests
    format =
      request.accepts("text/event-stream")
      ? (isPattern ? .eventsOfMany : .events)
      : request.accepts("application/octet-stream") && !areRequests ? .raw : .lines
    switch request.parameter("until") {
    case nil: endsWhenLive = false
    case "live": endsWhenLive = true
    default: throw HTTPProblem(400, "until can be live")
    }
    start = try request.start(otherwise: areRequests ? .new : .replay)
    count = try request.count()
    filter = try request.filter()
    cursor = request.parameter("cursor") ?? ""
    guard cursor.isEmpty || !isPattern else { throw HTTPProblem(400, "a cursor belongs to one topic") }
    window = try request.number("demand")
    guard window ?? 1 > 0 else { throw HTTPProblem(400, "demand must be a number from 1 on") }
    interval = try HTTPStreamKeepalive.interval(request, format, options)
    do throws(WireError) {
      if isPattern { _ = try TopicPattern(name) } else { try TopicName.validate(name) }
    } catch {
      throw HTTPProblem(error)
    }
  }
}
